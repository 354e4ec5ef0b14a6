package redisstore_test

import (
	"testing"

	"authguard/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
