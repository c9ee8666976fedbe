package component

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ReadSettings reads the annotations of an object that are under prefix, or the shared one.
func ReadSettings(prefix string, annotations map[string]string) (Settings, error) {
	var s Settings
	var errs []error
	read := func(name string, parse func(string) error) {
		for _, p := range []string{prefix, SharedPrefix} {
			if value, ok := annotations[p+"/"+name]; ok {
				if err := parse(value); err != nil {
					errs = append(errs, fmt.Errorf("annotation %s/%s: %w", p, name, err))
				}
				return
			}
		}
	}
	word := func(target *string) func(string) error {
		return func(value string) error {
			for part := range strings.SplitSeq(value, "-") {
				if part != "" {
					*target += strings.ToUpper(part[:1]) + part[1:]
				}
			}
			return nil
		}
	}
	order := func(set func(int16)) func(string) error {
		return func(value string) error {
			n, err := strconv.ParseInt(value, 10, 16)
			if err != nil {
				return fmt.Errorf("%q is not a number from -32768 to 32767", value)
			}
			set(int16(n))
			return nil
		}
	}
	read(AnnotationAdoptionPolicy, word((*string)(&s.AdoptionPolicy)))
	read(AnnotationReconcilePolicy, word((*string)(&s.ReconcilePolicy)))
	read(AnnotationUpdatePolicy, word((*string)(&s.UpdatePolicy)))
	read(AnnotationDeletePolicy, word((*string)(&s.DeletePolicy)))
	read(AnnotationPrunePolicy, word((*string)(&s.PrunePolicy)))
	read(AnnotationApplyOrder, order(func(n int16) { s.ApplyOrder = n }))
	read(AnnotationDeleteOrder, order(func(n int16) { s.DeleteOrder = n }))
	read(AnnotationPurgeOrder, order(func(n int16) { s.PurgeOrder = &n }))
	read(AnnotationReapplyInterval, func(value string) error {
		d, err := time.ParseDuration(value)
		s.ReapplyInterval = &d
		return err
	})
	return s, errors.Join(errs...)
}
