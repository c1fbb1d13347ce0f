package localaws

import (
	"errors"
	"os/exec"
	"syscall"
)

// inOwnGroup lets cmd lead a process group of its own: Ctrl-C in a terminal
// then reaches this process only, which ends cmd in order, children included.
func inOwnGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	endWithParent(cmd.SysProcAttr)
}

// killGroup ends a process that inOwnGroup prepared, with all its children.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
