package gateway

import (
	"bytes"
	"context"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/seaweedfs/seaweedfs/weed/stats"
	"kelp/go-bindings"
)

// memory is a store of objects for an engine that is only asked for its metrics.
type memory struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (m *memory) PutNew(_ context.Context, key string, parts [][]byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.data[key]; exists {
		return false, nil
	}
	m.data[key] = bytes.Join(parts, nil)
	return true, nil
}

func (m *memory) Get(_ context.Context, key string, offset, length int64, alloc func(int) []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, found := m.data[key]
	data = data[min(offset, int64(len(data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	given := alloc(len(data))
	return given[:copy(given, data)], found, nil
}

func (m *memory) List(_ context.Context, prefix, after string, limit int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for key := range m.data {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys[:min(limit, len(keys))], nil
}

func (m *memory) Delete(_ context.Context, keys []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.data, key)
	}
	return nil
}

func TestTheMetricsOfTheEngineStandBesideThoseOfSeaweedFS(t *testing.T) {
	serving := make(chan kelp.State, 8)
	engine, err := kelp.New(kelp.Config{}, kelp.Host{
		Objects: &memory{data: map[string][]byte{}},
		State:   func(state kelp.State, _ string) { serving <- state },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	select {
	case state := <-serving:
		if state != kelp.Serving {
			t.Fatalf("the engine is %v", state)
		}
	case <-time.After(time.Minute):
		t.Fatal("the engine does not serve")
	}
	stats.Gather.MustRegister(collector{engine})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer serveMetrics(listener)()

	families := func() map[string]string {
		response, err := http.Get("http://" + listener.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
		if response.StatusCode != http.StatusOK || kind != "text/plain" || err != nil {
			t.Fatalf("status %s, %s", response.Status, kind)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		parsed, err := parser.TextToMetricFamilies(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]string{}
		for name, family := range parsed {
			kinds[name] = family.GetType().String()
		}
		return kinds
	}
	kinds := families()
	for name, kind := range map[string]string{
		"SeaweedFS_master_is_leader":                             "GAUGE",
		"kelp_state":                                             "GAUGE",
		"kelp_store_call_seconds":                                "HISTOGRAM",
		"kelp_journal_commits_total":                             "COUNTER",
		"kafka_server_brokertopicmetrics_messagesin_total":       "COUNTER",
		"kafka_coordinator_group_groupmetadatamanager_numgroups": "GAUGE",
		"kafka_server_socket_server_metrics_incoming_byte_total": "COUNTER",
		"kafka_controller_kafkacontroller_globalpartitioncount":  "GAUGE",
		"kafka_server_socket_server_metrics_connection_count":    "GAUGE",
	} {
		if kinds[name] != kind {
			t.Errorf("%s is a %q, not a %s", name, kinds[name], kind)
		}
	}
	engine.Close()
	if kinds := families(); kinds["kelp_state"] != "" || kinds["SeaweedFS_master_is_leader"] == "" {
		t.Errorf("when the engine is closed there are %v", kinds)
	}
}
