// Command weed is SeaweedFS with Kelp as its Kafka gateway.
//
// It has all commands of SeaweedFS. `weed mq.kafka.gateway` runs Kelp, and `weed server` can start
// it too, with -mq.kafka.gateway. SeaweedFS' own main cannot be imported, so this one does the same.
package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/command"
	"github.com/seaweedfs/seaweedfs/weed/glog"
	weed_server "github.com/seaweedfs/seaweedfs/weed/server"
	"github.com/seaweedfs/seaweedfs/weed/util"
	flag "github.com/seaweedfs/seaweedfs/weed/util/fla9"
	"github.com/seaweedfs/seaweedfs/weed/util/grace"
	util_http "github.com/seaweedfs/seaweedfs/weed/util/http"
)

// The pictures and scripts of SeaweedFS' pages (its licence is beside them).
//
//go:embed static
var static embed.FS

// What the shell is told about a command line that cannot be understood.
const misused = 2

func main() {
	glog.MaxSize = 10 << 20
	glog.MaxFileCount = 5
	flag.Var(&util.ConfigurationFileDirectory, "config_dir", "directory with toml configuration files")
	flag.Usage = func() {
		printUsage(os.Stderr)
		fmt.Fprintln(os.Stderr, `For Logging, use "weed [logging_options] [command]". The logging options are:`)
		flag.PrintDefaults()
		os.Exit(misused)
	}
	pages, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // The folder is part of the program.
	}
	weed_server.StaticFS = pages
	grace.OnInterrupt(glog.Flush) // The first hook runs last.
	useKelp(command.Commands)
	if command.AutocompleteMain(command.Commands) {
		return
	}
	flag.Parse()
	args := flag.Args()
	if len(args) == 0 {
		flag.Usage()
	}
	if args[0] == "help" {
		os.Exit(help(args[1:]))
	}
	cmd := find(args[0])
	if cmd == nil {
		fmt.Fprintf(os.Stderr, "weed: unknown subcommand %q\nRun 'weed help' for usage.\n", args[0])
		os.Exit(misused)
	}
	os.Exit(run(cmd, args[1:]))
}

// run returns the status that the process ends with.
func run(cmd *command.Command, args []string) int {
	// FUSE makes a daemon of itself, and must have no threads yet.
	if cmd.Name() != command.GetFuseCommandName() {
		util_http.InitGlobalHttpClient()
	}
	cmd.Flag.Usage = cmd.Usage
	cmd.Flag.Parse(args)
	if !cmd.Run(cmd, cmd.Flag.Args()) {
		fmt.Fprintln(os.Stderr)
		cmd.Flag.Usage() // Ends the process.
	}
	glog.Flush()
	return command.CommandExitStatus()
}

func find(name string) *command.Command {
	for _, cmd := range command.Commands {
		if cmd.Name() == name && cmd.Runnable() {
			return cmd
		}
	}
	return nil
}

func printUsage(to io.Writer) {
	fmt.Fprint(to, "\nSeaweedFS: store billions of files and serve them fast!\n\nUsage:\n\n\tweed command [arguments]\n\nThe commands are:\n\n")
	for _, cmd := range command.Commands {
		if cmd.Runnable() {
			fmt.Fprintf(to, "    %-11s %s\n", cmd.Name(), cmd.Short)
		}
	}
	fmt.Fprint(to, "\nUse \"weed help [command]\" for more information about a command.\n\n")
}

// help prints what there is to say about a command, and returns the status to end with.
func help(args []string) int {
	if len(args) == 0 {
		printUsage(os.Stdout)
		return 0
	}
	cmd := find(args[0])
	if cmd == nil || len(args) > 1 {
		fmt.Fprintf(os.Stderr, "Unknown help topic %q. Run 'weed help'.\n", strings.Join(args, " "))
		return misused
	}
	fmt.Printf("Usage: weed %s\n\n  %s\n\n", cmd.UsageLine, strings.TrimSpace(cmd.Long))
	fmt.Fprintln(os.Stderr, "Default Parameters:")
	cmd.Flag.PrintDefaults()
	return 0
}
