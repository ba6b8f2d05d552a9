package gateway

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/stats"
	"kelp/go-bindings"
)

// collector gives the engine's metrics to a registry, such as the one that every weed has for its
// metrics port: so they stand beside SeaweedFS' own. When the engine is closed it gives none.
type collector struct {
	engine *kelp.Engine
}

// Describe says nothing: which series there are depends on topics, groups and clients.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(metrics chan<- prometheus.Metric) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(c.engine.Metrics()))
	if err != nil {
		desc := prometheus.NewDesc("kelp", "Kelp's metrics.", nil, nil)
		metrics <- prometheus.NewInvalidMetric(desc, err)
		return
	}
	for name, family := range families {
		for _, metric := range family.Metric {
			labels := make([]string, 0, len(metric.Label))
			for _, label := range metric.Label {
				labels = append(labels, label.GetName())
			}
			metrics <- series{prometheus.NewDesc(name, family.GetHelp(), labels, nil), metric}
		}
	}
}

// series is one that was parsed.
type series struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

func (s series) Desc() *prometheus.Desc { return s.desc }

func (s series) Write(to *dto.Metric) error {
	to.Label, to.Counter, to.Gauge, to.Histogram = s.metric.Label, s.metric.Counter, s.metric.Gauge, s.metric.Histogram
	return nil
}

// serveMetrics serves the metrics of this weed, to which those of its engine belong.
func serveMetrics(listener net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(stats.Gather, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); err != http.ErrServerClosed {
			glog.Errorf("kafka gateway: metrics: %v", err)
		}
	}()
	glog.Infof("kafka gateway: metrics are at http://%s/metrics", listener.Addr())
	return func() { server.Close() }
}
