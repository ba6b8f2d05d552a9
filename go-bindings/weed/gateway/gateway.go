// Package gateway is the Kafka gateway of a weed: Kelp's engine on the objects of a filer.
//
//	Run: filer found ─▶ engine made ─┬▶ standing by (another gateway has the data)
//	                                 ▼   │ it was silent for 9 s, or -takeover
//	                              serving ◀┘   listens from here on
//	                                 │ another gateway took over
//	                                 ▼
//	                              fenced       tells clients for 10 s where to go, then ends
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/seaweedfs/seaweedfs/weed/stats"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"kelp/go-bindings"
	"kelp/go-bindings/weed/filerstore"
)

const (
	// How long requests that are under way may take when the gateway stops.
	drain = 10 * time.Second

	// A start that is slower than this says what it waits for.
	patience = 3 * time.Second
)

// Options are what the flags of the command say.
type Options struct {
	IP         string // What clients are told to connect to.
	BindIP     string // Where the gateway listens. Empty: as IP.
	Port       int
	Advertised string // HOST:PORT that clients are told instead of IP and Port.

	Masters    string
	FilerGroup string
	Dir        string

	DefaultPartitions int
	Takeover          bool
	ConfigFile        string   // Kafka's server properties, one NAME=VALUE a line.
	Set               []string // Some more of them; these win.
	MetricsPort       int      // For the metrics of this weed; 0: none of the gateway's own.

	// Serving is called when clients can connect. It may be nil.
	Serving func()
}

var _ kelp.Objects = (*filerstore.Objects)(nil)

// Run serves until ctx ends, which is no error, or another gateway has taken over.
func Run(ctx context.Context, options Options) error {
	properties, err := options.properties()
	if err != nil {
		return err
	}
	objects, err := openObjects(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer objects.Close()

	states := make(chan state, 8)
	shown := newProjection(options.Dir)
	engine, err := kelp.New(kelp.Config{Properties: properties}, kelp.Host{
		Objects: objects,
		Log:     log,
		State:   func(kind kelp.State, detail string) { states <- state{kind, detail} },

		TopicsChanged: shown.signal,
	})
	if err != nil {
		return err
	}
	defer engine.Close()
	shown.start(engine.Topics, objects.Filer)
	defer shown.stop()
	if err := stats.Gather.Register(collector{engine}); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if options.MetricsPort > 0 {
		listener, err := net.Listen("tcp", options.address(options.MetricsPort))
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		defer serveMetrics(listener)()
	}
	return follow(ctx, options, engine, shown, states)
}

// state is what the engine tells of itself.
type state struct {
	kind   kelp.State
	detail string
}

// follow does what the engine's state asks for, until the end.
func follow(ctx context.Context, options Options, engine *kelp.Engine, shown *projection, states <-chan state) error {
	over := errors.New("the engine ended")
	for {
		select {
		case <-ctx.Done():
			glog.Infof("kafka gateway: stops; requests under way have %s", drain)
			return engine.Stop(drain)
		case now := <-states:
			switch now.kind {
			case kelp.Standby:
				glog.Infof("kafka gateway: stands by and does not listen: %s has the data", now.detail)
			case kelp.Serving:
				if err := listen(options, engine); err != nil {
					return errors.Join(err, engine.Stop(0))
				}
			case kelp.Fenced:
				over = fmt.Errorf("%s took over", now.detail)
				shown.stop()
			case kelp.Failed:
				over = fmt.Errorf("the data cannot be opened: %s", now.detail)
			case kelp.Ended:
				return over
			}
		}
	}
}

func listen(options Options, engine *kelp.Engine) error {
	address := options.address(options.Port)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if err := engine.ServeListener(listener.(*net.TCPListener)); err != nil {
		return err
	}
	glog.Infof("kafka gateway: listens on %s, clients are told to connect to %s; data is in %s of the filer", address, options.advertised(), options.Dir)
	if options.Serving != nil {
		options.Serving()
	}
	return nil
}

// openObjects waits for the filer.
func openObjects(ctx context.Context, options Options) (*filerstore.Objects, error) {
	util.LoadSecurityConfiguration()
	slow := time.AfterFunc(patience, func() {
		glog.Infof("kafka gateway: waits for a filer of group %q to register with the master at %s", options.FilerGroup, options.Masters)
	})
	defer slow.Stop()
	return filerstore.Open(ctx, filerstore.Options{
		Masters:       options.Masters,
		FilerGroup:    options.FilerGroup,
		Dir:           options.Dir,
		DialOption:    security.LoadClientTLS(util.GetViper(), "grpc.mq"),
		ClientAddress: options.advertised(),
	})
}

// properties are the engine's settings: what the flags say, then the file, then single ones.
func (o Options) properties() ([]string, error) {
	properties := []string{
		"listeners=PLAINTEXT://" + o.address(o.Port),
		"advertised.listeners=PLAINTEXT://" + o.advertised(),
		"num.partitions=" + strconv.Itoa(o.DefaultPartitions),
		"kelp.takeover=" + strconv.FormatBool(o.Takeover),
	}
	if o.ConfigFile != "" {
		text, err := os.ReadFile(o.ConfigFile)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != '!' {
				properties = append(properties, line)
			}
		}
	}
	return append(properties, o.Set...), nil
}

// address is HOST:PORT that a port of the gateway is bound to.
func (o Options) address(port int) string {
	host := o.BindIP
	if host == "" {
		host = o.IP
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// advertised is HOST:PORT that clients are told to connect to.
func (o Options) advertised() string {
	if o.Advertised != "" {
		return o.Advertised
	}
	return net.JoinHostPort(o.IP, strconv.Itoa(o.Port))
}

func log(level kelp.Level, text string) {
	switch level {
	case kelp.Error:
		glog.Error("kelp: " + text)
	case kelp.Warn:
		glog.Warning("kelp: " + text)
	case kelp.Info:
		glog.Info("kelp: " + text)
	default:
		glog.V(2).Info("kelp: " + text)
	}
}
