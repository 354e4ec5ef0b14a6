package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFamiliesAreChosenByName(t *testing.T) {
	all, err := choose(nil)
	require.NoError(t, err)
	require.Len(t, all, len(families))

	some, err := choose([]string{"memory", "redis"})
	require.NoError(t, err)
	require.Equal(t, []string{"redis", "memory"}, []string{some[0].name, some[1].name}, "in the order of the page")

	_, err = choose([]string{"redis", "disk"})
	require.EqualError(t, err, `no family "disk", want some of redis, memory, http, flood, timing, growth`)
}
