package controlplane_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// version answers --version and fails otherwise, having said why.
const version = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho the disk is made of cheese >&2\nexit 1\n"

func TestStartNamesTheBinaryAndTheRemedy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		harm    func(path string) error
		options controlplane.Options
		broken  string
		cause   error
	}{
		{
			name: "missing", harm: os.Remove, broken: "kube-apiserver", cause: os.ErrNotExist,
		},
		{
			name: "not executable", broken: "etcd", cause: os.ErrPermission,
			harm: func(path string) error { return os.Chmod(path, 0o644) },
		},
		{
			name: "no program", broken: "etcd",
			harm: func(path string) error { return os.WriteFile(path, []byte("\x7fELF..."), 0o755) },
		},
		{
			name: "failing", broken: "kube-apiserver",
			harm: func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755) },
		},
		{
			name: "of the controllers", harm: os.Remove, broken: "kube-controller-manager", cause: os.ErrNotExist,
			options: controlplane.Options{NamespaceDeletion: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := fakeBinaries(t)
			broken := filepath.Join(dir, tc.broken)
			if err := tc.harm(broken); err != nil {
				t.Fatal(err)
			}
			_, err := controlplane.Start(t.Context(), tc.options)
			var binaryErr *controlplane.BinaryError
			if !errors.As(err, &binaryErr) {
				t.Fatalf("Start returned %v, want a BinaryError", err)
			}
			if binaryErr.Path != broken {
				t.Errorf("the error is about %s, want %s", binaryErr.Path, broken)
			}
			if strings.Count(err.Error(), broken) != 1 || !strings.Contains(err.Error(), "make controlplane") {
				t.Errorf("the error is %v, want it to name the path %s once, and what to run", err, broken)
			}
			if tc.cause != nil && !errors.Is(err, tc.cause) {
				t.Errorf("the error is %v, want %v in it", err, tc.cause)
			}
		})
	}
}

func TestStartShowsWhatAProcessPrinted(t *testing.T) {
	fakeBinaries(t)
	_, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err == nil || !strings.Contains(err.Error(), "the disk is made of cheese") {
		t.Errorf("the error is %v, want one that shows what the process printed", err)
	}
}

func TestStartOutsideACheckout(t *testing.T) {
	t.Setenv("REAL", "true")
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Chdir(t.TempDir())
	_, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err == nil || !strings.Contains(err.Error(), "set KUBEBUILDER_ASSETS") {
		t.Errorf("the error is %v, want one that says to set KUBEBUILDER_ASSETS", err)
	}
}

func TestStartInACheckoutWithoutBinaries(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	enterEmptyCheckout(t)
	t.Setenv("REAL", "true")
	_, err := controlplane.Start(t.Context(), controlplane.Options{})
	etcd := filepath.Join("bin", "controlplane", "etcd")
	var binaryErr *controlplane.BinaryError
	if !errors.As(err, &binaryErr) || !strings.HasSuffix(binaryErr.Path, etcd) ||
		!strings.HasSuffix(err.Error(), "run: make controlplane") {
		t.Errorf("the error is %v, want one that names %s and make controlplane", err, etcd)
	}
}

func TestInProcessServerLacks(t *testing.T) {
	t.Setenv("REAL", "")
	for what, options := range map[string]controlplane.Options{
		"kube-scheduler": {Scheduler: true}, "nodes": {Nodes: 1}, "ClusterRoles": {RoleAggregation: true},
	} {
		_, err := controlplane.Start(t.Context(), options)
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "REAL=true") {
			t.Errorf("the error is %v, want one that names %s and REAL=true", err, what)
		}
	}
}

func TestStartWithoutTheBinariesOfACluster(t *testing.T) {
	for binary, options := range map[string]controlplane.Options{
		"kube-scheduler": {Scheduler: true},
		"kwok":           {Nodes: 1},
	} {
		t.Run(binary, func(t *testing.T) {
			fakeBinaries(t)
			enterEmptyCheckout(t)
			_, err := controlplane.Start(t.Context(), options)
			var binaryErr *controlplane.BinaryError
			if !errors.As(err, &binaryErr) || !strings.HasSuffix(binaryErr.Path, filepath.Join("bin", "cluster", binary)) ||
				binaryErr.Remedy != "run: make cluster" {
				t.Errorf("the error is %v, want one about %s whose remedy is make cluster", err, binary)
			}
		})
	}
}

// enterEmptyCheckout changes to a folder in a checkout without binaries.
func enterEmptyCheckout(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "hack", "controlplane"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "hack", "controlplane", "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(root, "some", "package")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
}

func TestAnExistingClusterIsUsedOnlyWhereAllowed(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	dir := fakeBinaries(t)
	if err := os.Remove(filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	var binaryErr *controlplane.BinaryError
	if _, err := controlplane.Start(t.Context(), controlplane.Options{}); !errors.As(err, &binaryErr) {
		t.Errorf("Start returned %v, want it to look for binaries", err)
	}
	_, err := controlplane.Start(t.Context(), controlplane.Options{AllowExistingCluster: true})
	if err == nil || !strings.Contains(err.Error(), "cannot use the existing cluster") {
		t.Errorf("Start returned %v, want it to look for a kubeconfig", err)
	}
}

func fakeBinaries(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(version), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	t.Setenv("REAL", "true")
	return dir
}
