package localaws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrToolsMissing is returned where the local tools are not installed.
var ErrToolsMissing = errors.New("the local tools are missing: run `make tools`")

// FindCheckout returns the folder that holds template.yaml: dir itself or the
// nearest one above it. An empty dir means the working directory.
func FindCheckout(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("localaws: find checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "template.yaml")); err == nil {
			return at, nil
		}
		if filepath.Dir(at) == at {
			return "", fmt.Errorf("localaws: no template.yaml in %s or above it", dir)
		}
		at = filepath.Dir(at)
	}
}

// tools are the programs of requirements.txt, in the checkout's .tools.
type tools struct {
	checkout string
	sam      string
	python   string // it has ministack
}

func findTools(checkout string) (tools, error) {
	bin := filepath.Join(checkout, ".tools", "bin")
	found := tools{checkout: checkout, sam: filepath.Join(bin, "sam"), python: filepath.Join(bin, "python3")}
	for _, program := range []string{found.sam, found.python, filepath.Join(bin, "ministack")} {
		if _, err := os.Stat(program); err != nil {
			return tools{}, fmt.Errorf("localaws: %s: %w", program, ErrToolsMissing)
		}
	}
	return found, nil
}

// runSAM runs the SAM CLI in the checkout, with its output going to log. Its
// error carries the end of that output.
func (t tools) runSAM(ctx context.Context, env []string, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, t.sam, args...)
	cmd.Dir = t.checkout
	cmd.Env = append(env,
		"SAM_CLI_TELEMETRY=0",
		"SAM_CLI_POLL_DELAY=0.2", // seconds between looks at a deployment; the default of 5 suits AWS
	)
	inOwnGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	var output bytes.Buffer
	cmd.Stdout = io.MultiWriter(&output, log)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		const enough = 4000 // bytes
		tail := output.Bytes()[max(0, output.Len()-enough):]
		return fmt.Errorf("localaws: sam %s: %w\n%s", args[0], errors.Join(err, ctx.Err()), tail)
	}
	return nil
}

// environment is the caller's, without anything that points at a real AWS
// account, plus the given variables.
func environment(extra ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "SAM_CLI_") {
			continue
		}
		env = append(env, variable)
	}
	return append(env, extra...)
}

// engineCredentials are what the engine and its clients sign with. The engine
// takes any, and turns a key id of twelve digits into the account number.
func engineCredentials(endpoint, region string) []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + accessKeyID, "AWS_SECRET_ACCESS_KEY=" + secretAccessKey,
		"AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region, "AWS_ENDPOINT_URL=" + endpoint,
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true",
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
}

const (
	accessKeyID     = "local"
	secretAccessKey = "local"
)
