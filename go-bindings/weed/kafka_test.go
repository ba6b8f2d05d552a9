package main

import (
	"slices"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/command"
	flag "github.com/seaweedfs/seaweedfs/weed/util/fla9"
)

// Scripts that start SeaweedFS' own gateway start Kelp as they are.
func TestTheGatewayHasTheFlagsOfSeaweedFS(t *testing.T) {
	cmd := find("mq.kafka.gateway")
	before := map[string]string{}
	cmd.Flag.VisitAll(func(f *flag.Flag) { before[f.Name] = f.DefValue })
	useKelp(command.Commands)
	for name, value := range before {
		now := cmd.Flag.Lookup(name)
		if now == nil || now.DefValue != value {
			t.Errorf("-%s with the default %q has become %+v", name, value, now)
		}
	}
	if len(before) < 8 {
		t.Errorf("SeaweedFS' gateway has the flags %v: is it the one that is replaced?", before)
	}

	server := find("server")
	if err := server.Flag.Parse([]string{"-mq.kafka.gateway", "-ip=10.0.0.1", "-master.port=1234", "-mq.kafka.gateway.set=a=1", "-mq.kafka.gateway.set=b=2"}); err != nil {
		t.Fatal(err)
	}
	if got := masterOfServer(server); got != "10.0.0.1:1234" {
		t.Errorf("the gateway looks for the master at %s", got)
	}
	server.Flag.Set("master.port.grpc", "5678")
	if got := masterOfServer(server); got != "10.0.0.1:1234.5678" {
		t.Errorf("the gateway looks for the master at %s", got)
	}
	if got := server.Flag.Lookup("mq.kafka.gateway.set").Value.(*list); !slices.Equal(*got, list{"a=1", "b=2"}) {
		t.Errorf("-set twice gives %q", *got)
	}
	if given(&server.Flag, "volume.max") || !given(&server.Flag, "ip") {
		t.Error("which flags were given is not known")
	}
}
