package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPropertiesComeFromFlagsThenTheFileThenSingleOnes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(file, []byte("# comment\n\n  num.partitions = 7\nlog.retention.ms=5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := Options{IP: "10.0.0.1", Port: 9092, DefaultPartitions: 4, Takeover: true, ConfigFile: file, Set: []string{"log.retention.ms=6"}}
	got, err := options.properties()
	want := []string{
		"listeners=PLAINTEXT://10.0.0.1:9092",
		"advertised.listeners=PLAINTEXT://10.0.0.1:9092",
		"num.partitions=4",
		"kelp.takeover=true",
		"num.partitions = 7",
		"log.retention.ms=5",
		"log.retention.ms=6",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v", got, err)
	}
	options.ConfigFile = file + ".missing"
	if _, err := options.properties(); err == nil {
		t.Error("a missing file is taken for an empty one")
	}
}

func TestClientsAreToldTheAdvertisedAddress(t *testing.T) {
	for _, c := range []struct {
		options          Options
		bind, advertised string
	}{
		{Options{IP: "10.0.0.1", Port: 9092}, "10.0.0.1:9092", "10.0.0.1:9092"},
		{Options{IP: "10.0.0.1", BindIP: "0.0.0.0", Port: 9093}, "0.0.0.0:9093", "10.0.0.1:9093"},
		{Options{IP: "10.0.0.1", BindIP: "0.0.0.0", Port: 9092, Advertised: "kafka.example.com:19092"}, "0.0.0.0:9092", "kafka.example.com:19092"},
		{Options{IP: "::1", Port: 9092}, "[::1]:9092", "[::1]:9092"},
	} {
		if bind, advertised := c.options.address(c.options.Port), c.options.advertised(); bind != c.bind || advertised != c.advertised {
			t.Errorf("%+v: listens on %s, advertises %s", c.options, bind, advertised)
		}
	}
}
