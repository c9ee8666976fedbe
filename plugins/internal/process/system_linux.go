package process

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup has a process start in a group of its own, and be killed with the thread that starts it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitWithGroup waits until a process has ended, and kills the others of its group. Nobody else gets the ID before
// that.
func waitWithGroup(command *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, command.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	killGroup(command.Process.Pid)
	return command.Wait()
}

// killGroup kills the processes of a group. There may be none.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

const (
	// maxFiles is how many files a process may have open, and maxFile how large a file may get that it writes.
	maxFiles = 256
	maxFile  = 64 << 20
)

// limit bounds what a process may use. A bound that the system refuses is left out.
func limit(pid int, limits Limits) {
	bounds := map[int]uint64{unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_FSIZE: maxFile, unix.RLIMIT_CORE: 0}
	if limits.Memory > 0 {
		bounds[unix.RLIMIT_DATA] = uint64(limits.Memory)
	}
	for resource, value := range bounds {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness)
}

// niceness has the operator get the processor before its plugins.
const niceness = 5
