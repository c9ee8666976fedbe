package projecttest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The variables that choose projects: "all", or a commit, and the files that a change touches, with spaces between.
const (
	projectsVariable = "ESPALIER_PROJECTS"
	touchedVariable  = "ESPALIER_TOUCHED"
)

// pluginProject is the place of the project of a plugin, which is behind the projects of operators.
var pluginProject = len(projects)

// projectOf returns the place of a project that is made from a folder of templates, and -1 for a folder of all.
func projectOf(folder string) int {
	switch folder {
	case "plugin":
		return pluginProject
	case "tree":
		folder = ""
	case "component":
		return slices.IndexFunc(projects, func(p project) bool { return p.component != "" })
	}
	return slices.IndexFunc(projects, func(p project) bool { return p.component == folder })
}

// chosenProjects returns the places of the projects to make, in order: those that the variables choose.
func chosenProjects(t *testing.T) []int {
	t.Helper()
	chosen, err := chooseProjects(os.Getenv(projectsVariable), strings.Fields(os.Getenv(touchedVariable)))
	if err != nil {
		t.Fatalf("%s is no commit: %v", projectsVariable, err)
	}
	return chosen
}

// chooseProjects chooses the first project without a value, or all, or two by the hash of a commit, so that each has
// its turn, and one for each folder of templates that was touched.
func chooseProjects(value string, touched []string) (chosen []int, err error) {
	count := pluginProject + 1
	switch value {
	case "":
		return []int{0}, nil
	case "all":
		for i := range count {
			chosen = append(chosen, i)
		}
		return chosen, nil
	}
	hash, err := strconv.ParseUint(value[:min(8, len(value))], 16, 32)
	if err != nil {
		return nil, err
	}
	first := int(hash) % count
	chosen = []int{first, (first + count/2) % count}
	for _, file := range touched {
		_, below, found := strings.Cut(file, "/scaffold/project/")
		folder, _, _ := strings.Cut(below, "/")
		if place := projectOf(folder); found && place >= 0 {
			chosen = append(chosen, place)
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

func TestChooseProjects(t *testing.T) {
	const folder = "cmd/espalier/internal/scaffold/project/"
	for _, tc := range []struct {
		value   string
		touched []string
		want    []int
	}{
		{"", []string{folder + "chart/a.go"}, []int{0}},
		{"all", nil, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"00000000ab", nil, []int{0, 6}},
		{"0000000c", nil, []int{5, 12}},
		{"00000000", []string{folder + "plugin/main.go", folder + "chart/a", folder + "common/b", "README.md"},
			[]int{0, 1, 6, 12}},
	} {
		if got, err := chooseProjects(tc.value, tc.touched); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q with %q chooses %v, %v, want %v", tc.value, tc.touched, got, err, tc.want)
		}
	}
	seen := map[int]bool{}
	for i := range 1000 {
		chosen, err := chooseProjects(strconv.FormatInt(int64(0x10000000+i*7919), 16), nil)
		if err != nil || len(chosen) != 2 {
			t.Fatalf("chose %v, %v, want two projects", chosen, err)
		}
		seen[chosen[0]], seen[chosen[1]] = true, true
	}
	if len(seen) != pluginProject+1 {
		t.Errorf("the hashes of a thousand commits choose the projects %v, want all", seen)
	}
	if _, err := chooseProjects("some", nil); err == nil {
		t.Error("a value that is neither all nor a commit was taken")
	}
}

// TestTemplatesAreThere: a folder of templates is that of one project, or of all.
func TestTemplatesAreThere(t *testing.T) {
	entries, err := os.ReadDir("../project")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "common" && projectOf(entry.Name()) < 0 {
			t.Errorf("no project is chosen when the templates in %s change", entry.Name())
		}
	}
}
