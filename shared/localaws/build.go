package localaws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// goFlags make a build that is small and the same in every folder:
// aws-lambda-go without its RPC server of the retired go1.x runtime, no debug
// tables, no paths, no build id.
const goFlags = `-trimpath -tags=lambda.norpc -buildvcs=false "-ldflags=-s -w -buildid="`

// Build builds the functions for this machine with `sam build` and returns the
// path of the built template. Each state of the sources has a folder of its own
// below .local/build, named by their hash: what was built before is taken as it
// is, and can never be stale. SAM's output goes to log.
func Build(ctx context.Context, checkout string, log io.Writer) (template string, err error) {
	checkout, err = FindCheckout(checkout)
	if err != nil {
		return "", err
	}
	found, err := findTools(checkout)
	if err != nil {
		return "", err
	}
	sum, err := sourceHash(checkout)
	if err != nil {
		return "", fmt.Errorf("localaws: hash the sources: %w", err)
	}
	builds := filepath.Join(checkout, ".local", "build")
	if err := os.MkdirAll(builds, 0o755); err != nil {
		return "", fmt.Errorf("localaws: build: %w", err)
	}
	// One build at a time: test binaries start together and want the same.
	unlock, err := lock(filepath.Join(builds, "lock"))
	if err != nil {
		return "", fmt.Errorf("localaws: build: %w", err)
	}
	defer unlock()

	target := filepath.Join(builds, sum)
	template = filepath.Join(target, "app", "template.yaml")
	if _, err := os.Stat(template); err == nil {
		now := time.Now() // in use: see removeOldBuilds
		return template, os.Chtimes(target, now, now)
	}
	partial, err := os.MkdirTemp(builds, "partial-")
	if err != nil {
		return "", fmt.Errorf("localaws: build: %w", err)
	}
	defer os.RemoveAll(partial)
	env := environment("GOFLAGS="+goFlags, "CGO_ENABLED=0") // static: the native build would link the host's libc
	err = found.runSAM(ctx, env, log, "build",
		"--template", filepath.Join(checkout, "template.yaml"),
		"--build-dir", filepath.Join(partial, "app"),
		"--parameter-overrides", "Architecture="+hostArchitecture())
	if err != nil {
		return "", err
	}
	if err := os.Rename(partial, target); err != nil {
		return "", fmt.Errorf("localaws: build: %w", err)
	}
	return template, removeOldBuilds(builds, target)
}

// lock waits for the exclusive use of a file; it ends with the process at the
// latest.
func lock(path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file.Close, nil
}

// hostArchitecture is this machine's, in Lambda's words.
func hostArchitecture() string {
	if runtime.GOARCH == "amd64" {
		return "x86_64"
	}
	return runtime.GOARCH
}

// sourceHash covers everything that can change a built function: the template,
// the module files, all files of functions and shared but tests, the compiler
// and its flags, and the SAM CLI's version through requirements.txt.
func sourceHash(checkout string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH, goFlags)
	add := func(path string) error {
		name, err := filepath.Rel(checkout, path)
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		content := sha256.New()
		if _, err := io.Copy(content, file); err != nil {
			return err
		}
		_, err = fmt.Fprintf(hash, "%s %x\n", filepath.ToSlash(name), content.Sum(nil))
		return err
	}
	for _, name := range []string{"template.yaml", "samconfig.toml", "requirements.txt", "go.mod", "go.sum"} {
		if err := add(filepath.Join(checkout, name)); err != nil {
			return "", err
		}
	}
	for _, folder := range []string{"functions", "shared"} {
		err := filepath.WalkDir(filepath.Join(checkout, folder), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir(), strings.HasSuffix(path, "_test.go"):
				return nil
			}
			return add(path)
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:32], nil
}

// removeOldBuilds removes the builds that nobody has used for an hour.
func removeOldBuilds(builds, current string) error {
	entries, err := os.ReadDir(builds)
	if err != nil {
		return fmt.Errorf("localaws: remove old builds: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(builds, entry.Name())
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || path == current || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("localaws: remove old builds: %w", err)
		}
	}
	return nil
}
