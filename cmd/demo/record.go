package main

import (
	"fmt"

	"authguard/guard"
	"authguard/guard/recording"
)

// record begins the recording of -record, if there is one, and tells how to end it.
func record(o *options) (guard.Recorder, func(), error) {
	if o.record == "" {
		return nil, func() {}, nil
	}
	r, err := recording.Open(recording.Config{Dir: o.record, Log: o.log})
	if err != nil {
		return nil, nil, fmt.Errorf("-record: %w", err)
	}
	return r, func() {
		if err := r.Close(); err != nil {
			o.log.Error("recording not ended", "err", err)
		}
	}, nil
}
