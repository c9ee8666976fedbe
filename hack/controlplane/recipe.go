package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// kubernetes is the module whose version the built API server reports.
const kubernetes = "k8s.io/kubernetes"

// binary is one program to build.
type binary struct {
	name string
	pkg  string
	// module is the folder of the module that has the requirements of pkg, relative to this module. Empty: this module.
	module string
	// firstTime is about how long it takes on two cores when nothing is in Go's build cache.
	firstTime time.Duration
}

// set is what one call of this program builds.
type set struct {
	// name is that of the link in bin.
	name     string
	binaries []binary
}

// controlPlane has what an API server with controllers consists of.
var controlPlane = set{name: "controlplane", binaries: []binary{
	{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", firstTime: time.Minute},
	{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", firstTime: 5 * time.Minute},
	{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", firstTime: 2 * time.Minute},
}}

// cluster has what a simulated cluster needs besides. The scheduler is no tool in go.mod, which would give the control
// plane another key: its requirements are among those of the others.
var cluster = set{name: "cluster", binaries: []binary{
	{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler", firstTime: time.Minute},
	{name: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok", module: "../kwok", firstTime: 2 * time.Minute},
}}

// modules returns the folders of the modules that the binaries are built in, each once.
func (s set) modules() []string {
	var folders []string
	for _, b := range s.binaries {
		if folder := cmp.Or(b.module, "."); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// recipe is everything that the built programs depend on, except the Go release.
type recipe struct {
	// version is the version of Kubernetes, such as v1.37.2.
	version string
	goos    string
	goarch  string
	// mod and sum are the contents of go.mod and go.sum, of all modules.
	mod, sum []byte
	binaries []binary
}

// readRecipe reads the recipe of a set. The module of Kubernetes is in dir.
func readRecipe(dir string, s set) (recipe, error) {
	r := recipe{goos: runtime.GOOS, goarch: runtime.GOARCH, binaries: s.binaries}
	for _, folder := range s.modules() {
		mod, err := os.ReadFile(filepath.Join(dir, folder, "go.mod"))
		if err != nil {
			return recipe{}, err
		}
		sum, err := os.ReadFile(filepath.Join(dir, folder, "go.sum"))
		if err != nil {
			return recipe{}, err
		}
		r.mod, r.sum = append(r.mod, mod...), append(r.sum, sum...)
	}
	required := regexp.MustCompile(`(?m)^\s*(?:require )?` + kubernetes + ` (v\S+)`).FindSubmatch(r.mod)
	if required == nil {
		return recipe{}, fmt.Errorf("%s does not require %s", filepath.Join(dir, "go.mod"), kubernetes)
	}
	r.version = string(required[1])
	return r, nil
}

// key returns the name of the folder for the programs of the recipe. It begins with the version and ends with a hash.
func (r recipe) key() string {
	h := sha256.New()
	parts := append([]string{string(r.mod), string(r.sum)}, r.flags()...)
	for _, b := range r.binaries {
		parts = append(parts, b.name, b.pkg)
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	return fmt.Sprintf("%s-%s-%s-%s", r.version, r.goos, r.goarch, hex.EncodeToString(h.Sum(nil))[:12])
}

// flags of "go build". Without a version Kubernetes would report v0.0.0, which clients take for a server that can
// do nothing.
func (r recipe) flags() []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(r.version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const component = "k8s.io/component-base/version."
	return []string{"-trimpath", "-ldflags", strings.Join([]string{
		"-s", "-w",
		"-X", component + "gitVersion=" + r.version,
		"-X", component + "gitMajor=" + major,
		"-X", component + "gitMinor=" + minor,
	}, " ")}
}
