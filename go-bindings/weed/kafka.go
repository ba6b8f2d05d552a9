package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/command"
	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	flag "github.com/seaweedfs/seaweedfs/weed/util/fla9"
	"github.com/seaweedfs/seaweedfs/weed/util/grace"
	"kelp/go-bindings/weed/filerstore"
	"kelp/go-bindings/weed/gateway"
)

// useKelp puts Kelp's gateway in the place of SeaweedFS' own.
func useKelp(commands []*command.Command) {
	for _, cmd := range commands {
		switch cmd.Name() {
		case "mq.kafka.gateway":
			changeGateway(cmd)
		case "server":
			changeServer(cmd)
		}
	}
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// kafkaFlags adds the flags that both commands have. In `weed server` each has a prefix.
func kafkaFlags(flags *flag.FlagSet, prefix string, options *gateway.Options) {
	flags.IntVar(&options.Port, prefix+"port", 9092, "Kafka gateway listen port")
	flags.StringVar(&options.Advertised, prefix+"advertised", "", "HOST:PORT that Kafka clients are told to connect to, when it is not the gateway's own (Docker, NAT)")
	flags.IntVar(&options.DefaultPartitions, prefix+"default-partitions", 4, "Default number of partitions for auto-created topics")
	flags.StringVar(&options.Dir, prefix+"dir", "/kelp", "directory of the filer that holds topics and records")
	flags.BoolVar(&options.Takeover, prefix+"takeover", false, "take the data over at once from a gateway that has it, instead of standing by until it is gone")
	flags.IntVar(&options.MetricsPort, prefix+"metricsPort", 0, "Prometheus metrics listen port (0 to disable)")
	flags.StringVar(&options.ConfigFile, prefix+"config", "", "file with Kafka's server properties, one NAME=VALUE a line")
	flags.Var((*list)(&options.Set), prefix+"set", "NAME=VALUE, one of Kafka's server properties; may be repeated")
}

// changeGateway gives the command flags of the same names as before, and another Run.
func changeGateway(cmd *command.Command) {
	var options gateway.Options
	cmd.Flag = flag.FlagSet{}
	cmd.Flag.StringVar(&options.IP, "ip", util.DetectedHostAddress(), "Kafka gateway advertised host address")
	cmd.Flag.StringVar(&options.BindIP, "ip.bind", "", "Kafka gateway bind address (default: same as -ip)")
	cmd.Flag.StringVar(&options.Masters, "master", "localhost:9333", "comma-separated SeaweedFS master servers")
	cmd.Flag.StringVar(&options.FilerGroup, "filerGroup", "", "filer group name")
	kafkaFlags(&cmd.Flag, "", &options)
	pprof := cmd.Flag.Int("port.pprof", 0, "HTTP profiling port (0 to disable)")
	registry := cmd.Flag.String("schema-registry-url", "", "Schema Registry URL (accepted, but not used yet)")

	cmd.UsageLine = "mq.kafka.gateway [-ip=<host>] [-ip.bind=<bind_addr>] [-port=9092] [-master=<master_servers>] [-filerGroup=<group>] [-dir=/kelp] [-default-partitions=4]"
	cmd.Short = "start a gateway for Kafka clients, which keeps topics and records on the filer"
	cmd.Long = gatewayHelp
	cmd.Run = func(*command.Command, []string) bool {
		if *pprof > 0 {
			go servePprof(cmp.Or(options.BindIP, options.IP), *pprof)
		}
		if *registry != "" {
			glog.Warningf("kafka gateway: -schema-registry-url is not used yet; records are kept as they come")
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		grace.OnInterrupt(func() {
			stop()
			<-ended
		})
		err := gateway.Run(ctx, options)
		close(ended)
		if err != nil {
			glog.Errorf("kafka gateway: %v", err)
			command.SetCommandExitStatus(1)
		}
		return true
	}
}

// changeServer adds the gateway to what `weed server` can start.
func changeServer(cmd *command.Command) {
	var options gateway.Options
	starts := cmd.Flag.Bool("mq.kafka.gateway", false, "whether to start the Kafka gateway, and a filer for it; -volume.max is then 32 unless it is given")
	kafkaFlags(&cmd.Flag, "mq.kafka.gateway.", &options)
	run := cmd.Run
	cmd.Run = func(cmd *command.Command, args []string) bool {
		if *starts {
			cmd.Flag.Set("filer", "true")
			filerstore.FindLocalFilers()
			if !given(&cmd.Flag, "volume.max") {
				// Each collection begins with seven volumes. The filer's own, the journal's and that of
				// the segments do not fit in the eight that are the default.
				cmd.Flag.Set("volume.max", "32")
			}
			value := func(name string) string { return cmd.Flag.Lookup(name).Value.String() }
			options.IP, options.BindIP = value("ip"), value("ip.bind")
			options.FilerGroup = value("filer.filerGroup")
			options.Masters = value("master.peers")
			if value("master") == "true" {
				options.Masters = masterOfServer(cmd)
			}
			go runInServer(options)
		}
		return run(cmd, args)
	}
}

func given(flags *flag.FlagSet, name string) (found bool) {
	flags.Visit(func(flag *flag.Flag) { found = found || flag.Name == name })
	return found
}

func masterOfServer(cmd *command.Command) string {
	number := func(name string) int { return cmd.Flag.Lookup(name).Value.(flag.Getter).Get().(int) }
	return string(pb.NewServerAddress(cmd.Flag.Lookup("ip").Value.String(), number("master.port"), number("master.port.grpc")))
}

// runInServer is the gateway beside other servers, which go on when another gateway takes over.
func runInServer(options gateway.Options) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	served := false
	options.Serving = func() {
		served = true
		// Registered last, the hook runs first: the filer must be there while the gateway stops.
		grace.OnInterrupt(func() {
			stop()
			<-ended
		})
	}
	err := gateway.Run(ctx, options)
	close(ended)
	switch {
	case err != nil && !served:
		glog.Exitf("kafka gateway: %v", err)
	case err != nil:
		glog.Errorf("kafka gateway: %v; the other servers of this process go on", err)
	}
}

func servePprof(host string, port int) {
	address := util.JoinHostPort(host, port)
	glog.Infof("kafka gateway: profiles are at http://%s/debug/pprof/", address)
	if err := http.ListenAndServe(address, nil); err != nil {
		fmt.Fprintln(os.Stderr, "pprof:", err)
	}
}

const gatewayHelp = `Start a gateway for Kafka clients. It finds a filer through the masters, and keeps topics, records and
offsets there, below -dir. One gateway at a time serves the data of a directory; a second one stands
by and takes over when the first one is gone.

Examples:
  weed mq.kafka.gateway -port=9092 -master=localhost:9333
  weed mq.kafka.gateway -ip=gateway1 -master=master1:9333,master2:9333 -set=message.max.bytes=2097152
  weed mq.kafka.gateway -ip.bind=0.0.0.0 -advertised=kafka.example.com:9092 -master=localhost:9333
`
