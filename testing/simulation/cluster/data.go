package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/testing/internal/storage"
	"github.com/espalier-dev/espalier/testing/simulation/cluster/internal/wal"
)

// restore returns the options of a storage that has what is in the data file, and keeps there what is written.
func (e *Environment) restore() (storage.Options, error) {
	options := storage.Options{Written: func(_ context.Context, entry *storage.Entry) error {
		e.addKind(entry)
		return nil
	}}
	if e.DataFile == "" {
		return options, nil
	}
	file, entries, revision, err := wal.Open(e.DataFile, wal.Options{
		Sync: e.Sync, Log: logf.Log.WithName("cluster"),
	})
	if err != nil {
		return options, fmt.Errorf("DataFile: %w", err)
	}
	e.ends = append(e.ends, file.Close)
	for _, entry := range entries {
		e.addKind(entry)
	}
	options.Entries, options.Revision = entries, revision
	options.Written = func(_ context.Context, entry *storage.Entry) error {
		if err := file.Append(entry); err != nil {
			return err
		}
		e.addKind(entry)
		return nil
	}
	return options, nil
}

// addKind lets the stand-ins know that there is an object of a kind.
func (e *Environment) addKind(entry *storage.Entry) {
	var kind struct{ APIVersion, Kind string }
	if entry.Value == nil || json.Unmarshal(entry.Value, &kind) != nil {
		return
	}
	e.kinds.Add(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).GroupKind())
}
