package promguard

import (
	"github.com/prometheus/client_golang/prometheus"

	"authguard/limiter/memstore"
)

var (
	memoryKeys      = memory("keys", "Keys stored now.")
	memoryBytes     = memory("bytes", "Bytes held for keys and states.")
	memoryEvictions = memory("evictions_total", "Keys that were dropped, while they still counted, to make room.")
	memoryFull      = memory("full_total", "Batches that failed because there was no room for a new key.")
)

func memory(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("authguard_memstore_"+name, help, nil, nil)
}

// Memory is a collector of what s holds. One can be registered with a registry.
func Memory(s *memstore.Store) prometheus.Collector { return memoryCollector{s} }

type memoryCollector struct{ store *memstore.Store }

// Describe implements [prometheus.Collector].
func (c memoryCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{memoryKeys, memoryBytes, memoryEvictions, memoryFull} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c memoryCollector) Collect(to chan<- prometheus.Metric) {
	s := c.store.Stats()
	to <- prometheus.MustNewConstMetric(memoryKeys, prometheus.GaugeValue, float64(s.Keys))
	to <- prometheus.MustNewConstMetric(memoryBytes, prometheus.GaugeValue, float64(s.Bytes))
	to <- prometheus.MustNewConstMetric(memoryEvictions, prometheus.CounterValue, float64(s.Evicted))
	to <- prometheus.MustNewConstMetric(memoryFull, prometheus.CounterValue, float64(s.Full))
}
