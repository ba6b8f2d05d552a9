// Memory is a Kafka broker whose host, in Go, keeps everything in memory.
//
//	go run ./examples/memory -listen 127.0.0.1:9092
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	kelp "kelp/go-bindings"
)

// drain is how long requests that are under way may take at the end.
const drain = 10 * time.Second

func main() {
	listen := flag.String("listen", "127.0.0.1:9092", "where clients connect, `HOST:PORT`")
	var properties list
	flag.Var(&properties, "set", "a Kafka server property, `NAME=VALUE`; may be repeated")
	flag.Parse()
	if err := serve(*listen, properties); err != nil {
		log.Fatal(err)
	}
}

func serve(address string, properties []string) error {
	ended := make(chan string, 1)
	why := "it was stopped"
	engine, err := kelp.New(kelp.Config{Properties: properties}, kelp.Host{
		Storage: newMemory(),
		Log:     func(level kelp.Level, line string) { log.Println(level, line) },
		State: func(state kelp.State, detail string) {
			switch state {
			case kelp.Failed, kelp.Fenced:
				why = detail
			case kelp.Ended:
				ended <- why
			}
		},
	})
	if err != nil {
		return err
	}
	defer engine.Close()
	port, err := engine.Listen(address)
	if err != nil {
		return err
	}
	fmt.Printf("serving on port %d\n", port)

	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	select {
	case <-interrupt:
		return engine.Stop(drain)
	case detail := <-ended:
		return fmt.Errorf("the engine ended: %s", detail)
	}
}

type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}
