package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// childCalled returns the ID of the process that this one has started under a name.
func childCalled(name string) (int, error) {
	all, err := processes()
	if err != nil {
		return 0, fmt.Errorf("unable to list the processes: %w", err)
	}
	i := slices.IndexFunc(all, func(p process) bool { return p.parent == os.Getpid() && p.name == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no process %s", name)
	}
	return all[i].id, nil
}

// process is a process of this machine.
type process struct {
	id, parent int
	name       string
}

// processes returns those that there are.
func processes() ([]process, error) {
	if runtime.GOOS == "linux" {
		return processesIn("/proc")
	}
	text, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		return nil, err
	}
	var all []process
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 {
			all = append(all, newProcess(fields[0], fields[1], fields[2]))
		}
	}
	return all, nil
}

// processesIn returns what /proc has.
func processesIn(proc string) ([]process, error) {
	stats, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return nil, err
	}
	var all []process
	for _, stat := range stats {
		folder := filepath.Dir(stat)
		text, err := os.ReadFile(stat)
		arguments, errOfArguments := os.ReadFile(filepath.Join(folder, "cmdline"))
		// Its own name is in parentheses, and may have any character.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if err != nil || errOfArguments != nil || len(fields) < 2 {
			continue // it has ended meanwhile
		}
		name, _, _ := strings.Cut(string(arguments), "\x00")
		all = append(all, newProcess(filepath.Base(folder), fields[1], name))
	}
	return all, nil
}

func newProcess(id, parent, name string) process {
	p := process{name: name}
	p.id, _ = strconv.Atoi(id) // the system says so
	p.parent, _ = strconv.Atoi(parent)
	return p
}
