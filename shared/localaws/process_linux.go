package localaws

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// endWithParent ends the child even when this process is killed outright. The
// signal is tied to the thread that starts the child: see startLocked.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// functionProcesses returns the ids of the engine's processes that run the
// function of the given physical name.
func functionProcesses(enginePID int, name string) ([]int, error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	wanted := []byte("\x00AWS_LAMBDA_FUNCTION_NAME=" + name + "\x00")
	var pids []int
	for _, path := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if group, err := syscall.Getpgid(pid); err != nil || group != enginePID || pid == enginePID {
			continue
		}
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		if bytes.Contains(append([]byte{0}, environ...), wanted) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
