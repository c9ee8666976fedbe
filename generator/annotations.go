package generator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-openapi/jsonpointer"
)

// maxReadyWhen is how long an expression may be, in bytes.
const maxReadyWhen = 4096

// ReadSettings reads the settings of an object from its annotations. It looks for each under prefix, and then under
// [SharedPrefix]. An annotation under prefix wins, even if it asks for the default.
//
// An unknown name under SharedPrefix is an error. So is one under prefix that is nearly the name of a setting. Other
// names under prefix are annotations of the user, and are ignored.
//
// The error joins all problems, each with the key of its annotation. The settings are then the zero value.
func ReadSettings(prefix string, annotations map[string]string) (Settings, error) {
	r := annotationReader{prefixes: []string{prefix, SharedPrefix}, annotations: annotations}
	var s Settings
	if !r.found() {
		return s, nil // as for most objects
	}
	read(&r, AnnotationAdoptionPolicy, &s.AdoptionPolicy, ParseAdoptionPolicy)
	read(&r, AnnotationReconcilePolicy, &s.ReconcilePolicy, ParseReconcilePolicy)
	read(&r, AnnotationUpdatePolicy, &s.UpdatePolicy, ParseUpdatePolicy)
	read(&r, AnnotationDeletePolicy, &s.DeletePolicy, ParseDeletePolicy)
	read(&r, AnnotationPrunePolicy, &s.PrunePolicy, ParsePrunePolicy)
	read(&r, AnnotationApplyOrder, &s.ApplyOrder, parseOrder)
	read(&r, AnnotationPurgeOrder, &s.PurgeOrder, optional(parseOrder))
	read(&r, AnnotationDeleteOrder, &s.DeleteOrder, parseOrder)
	read(&r, AnnotationReapplyInterval, &s.ReapplyInterval, optional(parseInterval))
	read(&r, AnnotationStatusHint, &s.StatusHint, parseStatusHint)
	read(&r, AnnotationReadyWhen, &s.ReadyWhen, parseReadyWhen)
	read(&r, AnnotationIgnoreFields, &s.IgnoreFields, func(text string) ([]string, error) {
		return parseIgnoreFields(text, prefix)
	})
	read(&r, AnnotationForeignInstances, &s.IgnoreForeignInstances, parseForeignInstances)
	read(&r, AnnotationParticipation, &s.Participation, parseParticipation)
	read(&r, AnnotationPresence, &s.Presence, parsePresence)
	read(&r, AnnotationIfAbsent, &s.IgnoreAbsence, parseIfAbsent)
	r.refuseUnknown()
	r.refuseContradictions(&s)
	if err := errors.Join(r.errs...); err != nil {
		return Settings{}, err
	}
	return s, nil
}

type annotationReader struct {
	// prefixes are those to look under, the best first.
	prefixes    []string
	annotations map[string]string
	// names are those that were read.
	names []string
	// keys are those of the annotations that were found, by name.
	keys map[string]string
	errs []error
}

// found reports whether there is an annotation under one of the prefixes.
func (r *annotationReader) found() bool {
	for key := range r.annotations {
		if i := strings.LastIndexByte(key, '/'); i >= 0 && slices.Contains(r.prefixes, key[:i]) {
			return true
		}
	}
	return false
}

// read stores the setting of the annotation name, as parse reads it, if there is one.
func read[T any](r *annotationReader, name string, to *T, parse func(text string) (T, error)) {
	r.names = append(r.names, name)
	for _, prefix := range r.prefixes {
		key := prefix + "/" + name
		text, ok := r.annotations[key]
		if !ok || prefix == "" {
			continue
		}
		if r.keys == nil {
			r.keys = map[string]string{}
		}
		r.keys[name] = key
		value, err := parse(text)
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("annotation %s: %w", key, err))
			return
		}
		*to = value
		return
	}
}

func optional[T any](parse func(text string) (T, error)) func(text string) (*T, error) {
	return func(text string) (*T, error) {
		value, err := parse(text)
		if err != nil {
			return nil, err
		}
		return &value, nil
	}
}

func parseOrder(text string) (int16, error) {
	order, err := strconv.ParseInt(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("must be a number from -32768 to 32767: %s", quote(text))
	}
	return int16(order), nil
}

func parseInterval(text string) (time.Duration, error) {
	interval, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("must be a time such as 1h30m: %s", quote(text))
	}
	if interval < 0 {
		return 0, fmt.Errorf("must not be negative: %s", quote(text))
	}
	return interval, nil
}

func parseForeignInstances(text string) (bool, error) {
	value, err := parse(text, nil, "block", "ignore")
	return value == "ignore", err
}

func parseParticipation(text string) (Participation, error) {
	const required Participation = "Required"
	value, err := parse(text, nil, required, ParticipationAuxiliary, ParticipationUnchecked)
	if value == required {
		value = ""
	}
	return value, err
}

func parsePresence(text string) (Presence, error) {
	const managed Presence = "Managed"
	value, err := parse(text, nil, managed, PresenceAbsent, PresenceOrphaned, PresenceReadOnly)
	if value == managed {
		value = ""
	}
	return value, err
}

func parseIfAbsent(text string) (bool, error) {
	value, err := parse(text, nil, "wait", "ignore")
	return value == "ignore", err
}

// refuseContradictions refuses annotations that would not count because of another one.
func (r *annotationReader) refuseContradictions(s *Settings) {
	if r.keys[AnnotationIfAbsent] != "" && s.Presence != PresenceReadOnly {
		r.errs = append(r.errs, fmt.Errorf("annotation %s: it needs %s: read-only",
			r.keys[AnnotationIfAbsent], AnnotationPresence))
	}
	switch s.Presence {
	case PresenceAbsent, PresenceOrphaned:
		if s.Participation != "" {
			r.contradict(AnnotationPresence, string(s.Presence), AnnotationParticipation)
		}
	case PresenceReadOnly:
		r.contradict(AnnotationPresence, string(s.Presence), AnnotationAdoptionPolicy, AnnotationReconcilePolicy,
			AnnotationUpdatePolicy, AnnotationPurgeOrder, AnnotationReapplyInterval, AnnotationIgnoreFields)
	}
	if s.Participation == ParticipationUnchecked {
		r.contradict(AnnotationParticipation, string(s.Participation), AnnotationStatusHint, AnnotationReadyWhen)
	}
}

// contradict refuses others of the annotations, since name has that value.
func (r *annotationReader) contradict(name, value string, others ...string) {
	for _, other := range others {
		if key := r.keys[other]; key != "" {
			r.errs = append(r.errs, fmt.Errorf("annotation %s: it contradicts %s: %s", key, r.keys[name], kebab(value)))
		}
	}
}

func parseStatusHint(text string) (StatusHint, error) {
	var hint StatusHint
	for part := range strings.SplitSeq(text, ",") {
		key, value, hasValue := strings.Cut(part, "=")
		switch word := kebab(strings.TrimSpace(key)); {
		case word == "has-observed-generation" && !hasValue:
			hint.HasObservedGeneration = true
		case word == "has-ready-condition" && !hasValue:
			hint.HasReadyCondition = true
		case word == "conditions" && hasValue:
			for condition := range strings.SplitSeq(value, ";") {
				condition = strings.TrimSpace(condition)
				if condition == "" {
					return StatusHint{}, fmt.Errorf("the name of a condition is empty: %s", quote(part))
				}
				if !slices.Contains(hint.Conditions, condition) {
					hint.Conditions = append(hint.Conditions, condition)
				}
			}
		default:
			return StatusHint{}, fmt.Errorf(
				"must consist of has-observed-generation, has-ready-condition, conditions=A;B: %s", quote(part))
		}
	}
	return hint, nil
}

func parseReadyWhen(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", errors.New("there is no expression")
	}
	if len(text) > maxReadyWhen {
		return "", fmt.Errorf("the expression has %d bytes, more than %d", len(text), maxReadyWhen)
	}
	return text, nil
}

func parseIgnoreFields(text, prefix string) ([]string, error) {
	var pointers []string
	for pointer := range strings.SplitSeq(text, ",") {
		pointer = strings.TrimSpace(pointer)
		if err := checkIgnoreField(pointer, prefix); err != nil {
			return nil, fmt.Errorf("%w: %s", err, quote(pointer))
		}
		if !slices.Contains(pointers, pointer) {
			pointers = append(pointers, pointer)
		}
	}
	return pointers, nil
}

// checkIgnoreField returns an error if pointer is no JSON pointer (RFC 6901) to a field that can be ignored. In the
// metadata, these are single labels and annotations: the rest identifies the object.
func checkIgnoreField(pointer, prefix string) error {
	tokens, err := jsonPointer(pointer)
	if err != nil {
		return err
	}
	switch tokens[0] {
	case "apiVersion", "kind":
		return errIdentifying
	case "metadata":
		if len(tokens) != 3 || tokens[1] != "labels" && tokens[1] != "annotations" {
			return errIdentifying
		}
		if tokens[2] == prefix+"/"+AnnotationOwnerID || tokens[2] == prefix+"/"+AnnotationDigest {
			return errIdentifying
		}
	}
	return nil
}

var (
	errIdentifying = errors.New("is needed to know the object again, and cannot be ignored")
	errNoPointer   = errors.New("is not a JSON pointer such as /spec/replicas")
)

// jsonPointer returns the parts of a JSON pointer. There is at least one, and none is empty.
func jsonPointer(pointer string) ([]string, error) {
	parsed, err := jsonpointer.New(pointer)
	tokens := parsed.DecodedTokens()
	if err != nil || len(tokens) == 0 || slices.Contains(tokens, "") || loneTilde.MatchString(pointer) {
		return nil, errNoPointer
	}
	return tokens, nil
}

// loneTilde matches a tilde that is not part of an escape. The parser leaves it as it is.
var loneTilde = regexp.MustCompile(`~([^01]|$)`)
