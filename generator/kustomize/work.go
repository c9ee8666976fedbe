package kustomize

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/internal/document"
)

// work is what a build has to do. kustomize cannot be interrupted, so it must be known before.
type work struct {
	objects int
	time    time.Duration
}

// kustomize compares each object with each other one. The times are those of a slow machine.
const (
	timePerObject = 500 * time.Microsecond
	timePerPair   = 500 * time.Nanosecond
	defaultTime   = 10 * time.Second
	// manyObjects is more than any limit of time admits.
	manyObjects = 1_000_000
)

// with returns the work for further objects.
func (w work) with(objects int) work {
	w.objects = min(w.objects+objects, manyObjects)
	return w
}

// built adds the time to put the objects together.
func (w work) built() work {
	n := time.Duration(w.objects)
	w.time = min(w.time+n*timePerObject+n*n*timePerPair, manyObjects*time.Second)
	return w
}

func (w work) check(limits gotemplate.Limits) error {
	if err := limits.CheckObjects(w.objects); err != nil {
		return err
	}
	if limits.Time <= 0 {
		limits.Time = defaultTime
	}
	if w.time > limits.Time {
		return fmt.Errorf("%w: kustomize would need longer than %s for %d objects; divide them among components, "+
			"or raise Limits.Time", gotemplate.ErrLimit, limits.Time, w.objects)
	}
	return nil
}

// work returns what a build of a folder has to do. known has the folders that were looked at. A folder that contains
// itself is an error of kustomize.
func (t tree) work(dir string, known map[string]work) work {
	if w, ok := known[dir]; ok {
		return w
	}
	known[dir] = work{}
	var sum work
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		var k types.Kustomization
		content, ok := t.files[path.Join(dir, name)]
		if !ok || k.Unmarshal(content) != nil {
			continue
		}
		k.FixKustomization()
		sum = sum.with(len(k.ConfigMapGenerator) + len(k.SecretGenerator))
		for _, reference := range slices.Concat(k.Resources, k.Components, k.Generators) {
			if strings.Contains(reference, "\n") {
				sum = sum.with(1)
				continue
			}
			target, _ := join(dir, reference)
			if content, ok := t.files[target]; ok {
				sum = sum.with(countObjects(content))
				continue
			}
			if target == "." {
				target = ""
			}
			below := t.work(target, known)
			sum = sum.with(below.objects)
			sum.time = min(sum.time+below.time, manyObjects*time.Second)
		}
	}
	known[dir] = sum.built()
	return known[dir]
}

// countObjects returns how many objects are in a file, also in lists. A backslash may stand for any letter.
func countObjects(content []byte) int {
	if !bytes.Contains(content, []byte("items")) && !bytes.ContainsAny(content, "\\\x00") {
		return document.Count(string(content))
	}
	count := 0
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			return max(count, 1)
		}
		count += itemsIn(&node)
	}
}

func itemsIn(node *yaml.Node) int {
	node = target(node)
	count := 0
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.DocumentNode:
			count += itemsIn(child)
		case node.Kind == yaml.MappingNode && i%2 == 1 && target(node.Content[i-1]).Value == "items":
			for _, item := range target(child).Content {
				count += itemsIn(item)
			}
		}
	}
	return max(count, 1)
}
