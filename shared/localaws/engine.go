package localaws

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// engineProgram starts the emulator, with what localaws changes in it.
//
//go:embed engine.py
var engineProgram string

// DefaultRegion is where the local stack pretends to be.
const DefaultRegion = "ap-south-1"

// EngineOptions say how to start an Engine. The zero value is a good start.
type EngineOptions struct {
	Checkout string // folder of template.yaml; default: found from the working directory
	Port     int    // on 127.0.0.1; 0 takes a free one
	Region   string // default DefaultRegion

	// FunctionEndpoint is the AWS endpoint that functions are told, as
	// AWS_ENDPOINT_URL. Default: the engine itself.
	FunctionEndpoint string

	// Log gets the engine's output. Default: appended to .local/emulator.log.
	Log io.Writer
}

// Engine is a running emulator with no state but what this process puts there.
type Engine struct {
	URL    string // http://127.0.0.1:<port>
	Region string

	tools   tools
	cmd     *exec.Cmd
	exited  chan struct{} // closed once the process has ended
	exitErr error         // valid after exited
	tempDir string
	close   sync.Once
}

// StartEngine starts the emulator and returns when it answers. It ends with
// Close, at the latest with this process. Errors: ErrToolsMissing; a port that
// is taken; an engine that does not come up, with where to read why.
func StartEngine(ctx context.Context, opts EngineOptions) (*Engine, error) {
	checkout, err := FindCheckout(opts.Checkout)
	if err != nil {
		return nil, err
	}
	found, err := findTools(checkout)
	if err != nil {
		return nil, err
	}
	port, err := choosePort(opts.Port)
	if err != nil {
		return nil, err
	}
	log, logName := opts.Log, "the given log"
	if log == nil {
		file, err := openLog(checkout)
		if err != nil {
			return nil, err
		}
		defer file.Close() // the process has its own handle
		log, logName = file, file.Name()
	}
	// The engine unpacks functions below its temporary folder, in a place named
	// after the port; a folder of its own keeps that from outliving it.
	tempDir, err := os.MkdirTemp("", "localaws-")
	if err != nil {
		return nil, fmt.Errorf("localaws: start engine: %w", err)
	}

	e := &Engine{
		URL:     "http://127.0.0.1:" + strconv.Itoa(port),
		Region:  firstNonEmpty(opts.Region, DefaultRegion),
		tools:   found,
		exited:  make(chan struct{}),
		tempDir: tempDir,
	}
	e.cmd = exec.Command(found.python, "-c", engineProgram)
	e.cmd.Env = e.environment(port, firstNonEmpty(opts.FunctionEndpoint, e.URL))
	e.cmd.Dir = tempDir
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.WaitDelay = time.Second // a function process may hold the output open
	inOwnGroup(e.cmd)
	if err := e.start(); err != nil {
		os.RemoveAll(tempDir)
		return nil, fmt.Errorf("localaws: start engine: %w", err)
	}
	if err := e.waitUntilHealthy(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("localaws: start engine: %w; see %s", err, logName), e.Close())
	}
	return e, nil
}

// environment is complete in itself, as functions inherit it: nothing of the
// user's own AWS set-up may get through.
func (e *Engine) environment(port int, functionEndpoint string) []string {
	return append(engineCredentials(functionEndpoint, e.Region),
		"PATH="+os.Getenv("PATH"), "HOME="+e.tempDir, "TMPDIR="+e.tempDir, "LANG=C.UTF-8",
		"GATEWAY_PORT="+strconv.Itoa(port),
		"BIND_HOST=127.0.0.1",   // the default is every interface
		"IOT_MTLS_ENABLED=0",    // an MQTT listener that BIND_HOST does not cover
		"SFTP_ENABLED=0",        // likewise
		"LAMBDA_EXECUTOR=local", // functions as processes, not containers
		"MINISTACK_REGION="+e.Region,
	)
}

// start starts the process on a thread that stays until the process ends: on
// Linux a child with a parent-death signal dies with the thread that made it.
func (e *Engine) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := e.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		e.exitErr = e.cmd.Wait()
		close(e.exited)
	}()
	return <-started
}

func (e *Engine) waitUntilHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-e.exited:
			return fmt.Errorf("it ended at once: %w", e.exitErr)
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w", e.URL, ctx.Err())
		case <-tick.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+"/_ministack/health", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
}

// Config makes AWS clients for the engine.
func (e *Engine) Config() aws.Config { return clientConfig(e.URL, e.Region) }

// PID is the id of the engine's process.
func (e *Engine) PID() int { return e.cmd.Process.Pid }

// Exited is closed once the engine's process has ended, by Close or by itself.
func (e *Engine) Exited() <-chan struct{} { return e.exited }

// Close ends the engine with the functions it runs, and forgets all its state.
func (e *Engine) Close() error {
	var err error
	e.close.Do(func() {
		err = killGroup(e.PID())
		<-e.exited
		err = errors.Join(err, os.RemoveAll(e.tempDir))
	})
	if err != nil {
		return fmt.Errorf("localaws: close engine: %w", err)
	}
	return nil
}

func clientConfig(endpoint, region string) aws.Config {
	return aws.Config{
		Region:       region,
		Credentials:  credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, ""),
		BaseEndpoint: aws.String(endpoint),
	}
}

// choosePort returns a free port of 127.0.0.1, or the wanted one if it is free.
func choosePort(wanted int) (int, error) {
	listener, err := listen(wanted)
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("localaws: port %d of 127.0.0.1 is in use: stop what listens there, or choose another", port)
	}
	if err != nil {
		return nil, fmt.Errorf("localaws: %w", err)
	}
	return listener, nil
}

// openLog opens .local/emulator.log for appending; a large one starts anew.
func openLog(checkout string) (*os.File, error) {
	path := filepath.Join(checkout, ".local", "emulator.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("localaws: %w", err)
	}
	const large = 10 << 20 // bytes
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > large {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("localaws: %w", err)
	}
	return file, nil
}

func firstNonEmpty(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
