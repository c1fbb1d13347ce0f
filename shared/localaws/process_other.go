//go:build unix && !linux

package localaws

import (
	"errors"
	"syscall"
)

func endWithParent(*syscall.SysProcAttr) {}

func functionProcesses(int, string) ([]int, error) {
	return nil, errors.New("finding a function's process needs Linux's /proc")
}
