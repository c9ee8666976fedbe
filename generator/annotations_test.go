package generator_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
)

const prefix = "platform.example.com"

func ptr[T any](v T) *T { return &v }

func TestReadSettings(t *testing.T) {
	own := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[prefix+"/"+pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        generator.Settings
	}{
		"nothing": {nil, generator.Settings{}},
		"everything": {own(
			"adoption-policy", "always", "reconcile-policy", "once", "update-policy", "ssa-override", "delete-policy", "orphan",
			"prune-policy", "before", "apply-order", "-32768", "purge-order", "32767", "delete-order", "+7",
			"reapply-interval", "1h30m", "status-hint", "has-observed-generation,has-ready-condition,conditions=A;B",
			"ready-when", "object.status.phase == 'Bound'", "ignore-fields", "/spec/replicas,/metadata/annotations/a~1b",
			"foreign-instances", "ignore",
		), generator.Settings{
			AdoptionPolicy: apis.AdoptAlways, ReconcilePolicy: apis.ReconcileOnce, UpdatePolicy: apis.UpdateApplyOverride,
			DeletePolicy: apis.DeleteOrphan, PrunePolicy: apis.PruneBefore, ApplyOrder: -32768, PurgeOrder: ptr(int16(32767)), DeleteOrder: 7,
			ReapplyInterval: ptr(90 * time.Minute),
			StatusHint:      generator.StatusHint{HasObservedGeneration: true, HasReadyCondition: true, Conditions: []string{"A", "B"}},
			ReadyWhen:       "object.status.phase == 'Bound'", IgnoreFields: []string{"/spec/replicas", "/metadata/annotations/a~1b"},
			IgnoreForeignInstances: true,
		}},
		"defaults in so many words": {own(
			"update-policy", "default", "delete-policy", "default", "apply-order", "0", "purge-order", "0", "reapply-interval", "0",
			"foreign-instances", "Block",
		), generator.Settings{PurgeOrder: ptr(int16(0)), ReapplyInterval: ptr(time.Duration(0))}},
		"shared prefix": {map[string]string{"espalier.dev/apply-order": "3", "espalier.dev/ready-when": "true"},
			generator.Settings{ApplyOrder: 3, ReadyWhen: "true"}},
		"own prefix wins": {map[string]string{
			"espalier.dev/apply-order": "3", prefix + "/apply-order": "4",
			"espalier.dev/update-policy": "recreate", prefix + "/update-policy": "default",
			"espalier.dev/delete-order": "no number", prefix + "/delete-order": "5",
		}, generator.Settings{ApplyOrder: 4, DeleteOrder: 5}},
		"what is not ours": {map[string]string{
			"other.example.com/apply-order": "x", "apply-order": "x", "/apply-order": "x", prefix + "/owner-id": "x", prefix + "/digest": "x",
			prefix + "x/apply-order": "x", "sub." + prefix + "/apply-order": "x",
		}, generator.Settings{}},
		"annotations of the user under the prefix of the component": {own("checksum", "x", "order", "x", "policy", "x", "fence", "x",
			"deploy-order", "x", "restarted-at", "x", "team", "x", "", "x", strings.Repeat("x", 1000), "x"), generator.Settings{}},
		"other spellings of a status hint": {own("status-hint", " HasObservedGeneration , hasReadyCondition, Conditions=A; B;A"),
			generator.Settings{StatusHint: generator.StatusHint{HasObservedGeneration: true, HasReadyCondition: true, Conditions: []string{"A", "B"}}}},
		"conditions twice": {own("status-hint", "conditions=A,conditions=B"),
			generator.Settings{StatusHint: generator.StatusHint{Conditions: []string{"A", "B"}}}},
		"fields once each": {own("ignore-fields", " /spec/a , /spec/b,/spec/a"), generator.Settings{IgnoreFields: []string{"/spec/a", "/spec/b"}}},
		"fields that resemble forbidden ones": {own("ignore-fields", "/metadataX,/spec/metadata/name,/spec/kind,/status,/metadata/labels/a,/a~0b~1c~01"),
			generator.Settings{IgnoreFields: []string{"/metadataX", "/spec/metadata/name", "/spec/kind", "/status", "/metadata/labels/a", "/a~0b~1c~01"}}},
		"the longest expression": {own("ready-when", strings.Repeat("x", 4096)), generator.Settings{ReadyWhen: strings.Repeat("x", 4096)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generator.ReadSettings(prefix, tc.annotations)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the settings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadSettingsErrors(t *testing.T) {
	const hint = "must consist of has-observed-generation, has-ready-condition, conditions=A;B: "
	const identifying = "is needed to know the object again, and cannot be ignored: "
	const noPointer = "is not a JSON pointer such as /spec/replicas: "
	for _, tc := range []struct{ name, value, want string }{
		{"adoption-policy", "maybe", `must be one of never, if-unowned, always: "maybe"`},
		{"reconcile-policy", "", `must be one of on-object-change, on-object-or-component-change, once: ""`},
		{"update-policy", "patch", `must be one of apply, apply-override, replace, recreate: "patch"`},
		{"delete-policy", "keep", `must be one of delete, orphan, orphan-on-apply, orphan-on-delete: "keep"`},
		{"prune-policy", "default", `must be one of before, with, after: "default"`},
		{"apply-order", "32768", `must be a number from -32768 to 32767: "32768"`},
		{"purge-order", "-32769", `must be a number from -32768 to 32767: "-32769"`},
		{"delete-order", "", `must be a number from -32768 to 32767: ""`},
		{"apply-order", "0x10", `must be a number from -32768 to 32767: "0x10"`},
		{"apply-order", "1_0", `must be a number from -32768 to 32767: "1_0"`},
		{"apply-order", " 1", `must be a number from -32768 to 32767: " 1"`},
		{"reapply-interval", "10", `must be a time such as 1h30m: "10"`},
		{"reapply-interval", "-1s", `must not be negative: "-1s"`},
		{"status-hint", "", hint + `""`},
		{"status-hint", "has-observed-generation,", hint + `""`},
		{"status-hint", "has-ready-condition=true", hint + `"has-ready-condition=true"`},
		{"status-hint", "conditions", hint + `"conditions"`},
		{"status-hint", "ready", hint + `"ready"`},
		{"status-hint", "conditions=", `the name of a condition is empty: "conditions="`},
		{"status-hint", "conditions=A;;B", `the name of a condition is empty: "conditions=A;;B"`},
		{"ready-when", " \n", "there is no expression"},
		{"ready-when", strings.Repeat("x", 4097), "the expression has 4097 bytes, more than 4096"},
		{"ignore-fields", "", noPointer + `""`},
		{"ignore-fields", "/", noPointer + `"/"`},
		{"ignore-fields", "spec/replicas", noPointer + `"spec/replicas"`},
		{"ignore-fields", "/spec/replicas/", noPointer + `"/spec/replicas/"`},
		{"ignore-fields", "/spec//replicas", noPointer + `"/spec//replicas"`},
		{"ignore-fields", "/spec/a~2", noPointer + `"/spec/a~2"`},
		{"ignore-fields", "/spec/a~", noPointer + `"/spec/a~"`},
		{"ignore-fields", "/spec/~~1", noPointer + `"/spec/~~1"`},
		{"ignore-fields", "/spec/a,,/spec/b", noPointer + `""`},
		{"ignore-fields", "/spec/a,/kind", identifying + `"/kind"`},
		{"ignore-fields", "/apiVersion", identifying + `"/apiVersion"`},
		{"ignore-fields", "/metadata", identifying + `"/metadata"`},
		{"ignore-fields", "/metadata/name", identifying + `"/metadata/name"`},
		{"ignore-fields", "/metadata/labels", identifying + `"/metadata/labels"`},
		{"ignore-fields", "/metadata/annotations", identifying + `"/metadata/annotations"`},
		{"ignore-fields", "/metadata/labels/a/b", identifying + `"/metadata/labels/a/b"`},
		{"ignore-fields", "/metadata/ownerReferences/0", identifying + `"/metadata/ownerReferences/0"`},
		{"ignore-fields", "/metadata/labels/platform.example.com~1owner-id", identifying + `"/metadata/labels/platform.example.com~1owner-id"`},
		{"ignore-fields", "/metadata/annotations/platform.example.com~1digest", identifying + `"/metadata/annotations/platform.example.com~1digest"`},
		{"foreign-instances", "delete", `must be one of block, ignore: "delete"`},
	} {
		for _, p := range []string{prefix, generator.SharedPrefix} {
			key := p + "/" + tc.name
			got, err := generator.ReadSettings(prefix, map[string]string{key: tc.value})
			if want := "annotation " + key + ": " + tc.want; errorText(err) != want {
				t.Errorf("%s=%.80q: %q, want %q", key, tc.value, errorText(err), want)
			}
			if diff := cmp.Diff(generator.Settings{}, got); diff != "" {
				t.Errorf("%s=%.80q: there are settings in spite of an error, want none (-want +got):\n%s", key,
					tc.value, diff)
			}
		}
	}
}

// A key that is nearly the one of a setting is a mistake, and would be one that nobody notices. Under the shared prefix
// each unknown key is.
func TestReadSettingsRefusesUnknownKeys(t *testing.T) {
	const own, shared = prefix + "/", generator.SharedPrefix + "/"
	for key, nearest := range map[string]string{
		own + "apply-ordr": own + "apply-order", own + "appply-order": own + "apply-order", own + "apply-odrer": own + "apply-order",
		own + "applyOrder": own + "apply-order", own + "Apply_Order": own + "apply-order", own + "ready-wehn": own + "ready-when",
		own + "delete-polcy": own + "delete-policy", own + "adoption-polices": own + "adoption-policy",
		own + "ignore-field": own + "ignore-fields", own + "purge-oder": own + "purge-order",
		shared + "apply-ordr": shared + "apply-order", shared + "new": "", shared + "owner-id": "", shared + "": "",
		shared + "reday-when": shared + "ready-when",
	} {
		got, err := generator.ReadSettings(prefix, map[string]string{key: "1", own + "delete-order": "2"})
		want := "annotation " + key + ": is unknown"
		if nearest != "" {
			want += "; the nearest is " + nearest
		}
		if errorText(err) != want {
			t.Errorf("%q, want %q", errorText(err), want)
		}
		if diff := cmp.Diff(generator.Settings{}, got); diff != "" {
			t.Errorf("%s: there are settings in spite of an error, want none (-want +got):\n%s", key, diff)
		}
	}
}

func TestReadSettingsJoinsErrors(t *testing.T) {
	annotations := map[string]string{
		prefix + "/foreign-instances": "x", prefix + "/adoption-policy": "y", "espalier.dev/apply-order": "z", prefix + "/delete-order": "1",
		prefix + "/prune-polcy": "x", prefix + "/apply-ordr": "x",
	}
	_, first := generator.ReadSettings(prefix, annotations)
	want := `annotation platform.example.com/adoption-policy: must be one of never, if-unowned, always: "y"
annotation espalier.dev/apply-order: must be a number from -32768 to 32767: "z"
annotation platform.example.com/foreign-instances: must be one of block, ignore: "x"
annotation platform.example.com/apply-ordr: is unknown; the nearest is platform.example.com/apply-order
annotation platform.example.com/prune-polcy: is unknown; the nearest is platform.example.com/prune-policy`
	if errorText(first) != want {
		t.Errorf("the error is %q, want %q", errorText(first), want)
	}
	for range 20 {
		if _, err := generator.ReadSettings(prefix, annotations); errorText(err) != want {
			t.Fatalf("the error is %v, want always the same, %q", err, want)
		}
	}
}

func TestReadSettingsWithoutPrefix(t *testing.T) {
	got, err := generator.ReadSettings("", map[string]string{"/apply-order": "1", "espalier.dev/delete-order": "2"})
	if diff := cmp.Diff(generator.Settings{DeleteOrder: 2}, got); err != nil || diff != "" {
		t.Errorf("the error is %v, want none, and the settings differ (-want +got):\n%s", err, diff)
	}
}

// settingNames are all annotations that are read.
var settingNames = []string{
	generator.AnnotationAdoptionPolicy, generator.AnnotationReconcilePolicy, generator.AnnotationUpdatePolicy,
	generator.AnnotationDeletePolicy, generator.AnnotationPrunePolicy, generator.AnnotationApplyOrder, generator.AnnotationPurgeOrder,
	generator.AnnotationDeleteOrder, generator.AnnotationReapplyInterval, generator.AnnotationStatusHint, generator.AnnotationReadyWhen,
	generator.AnnotationIgnoreFields, generator.AnnotationForeignInstances,
	generator.AnnotationParticipation, generator.AnnotationPresence, generator.AnnotationIfAbsent,
}

// FuzzReadSettings has each annotation, with any text: either the error names it, and is not long, or what was read can
// be written down again and then means the same.
func FuzzReadSettings(f *testing.F) {
	for _, text := range []string{
		"", "if-unowned", "IfUnowned", "default", "-32768", "1h", "-1h", "9999999999999999999h", "NaN", "conditions=A;B,has-ready-condition",
		"/spec/replicas", "/metadata/labels/a~1b,/x~0", "~", "/~", "object.ready", "block", "auxiliary", "read-only", "\x00\xff", "conditions=;", ",", "İ", "ΑΣ",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range settingNames {
			key := prefix + "/" + name
			settings, err := generator.ReadSettings(prefix, map[string]string{key: text})
			if err != nil {
				if !strings.HasPrefix(err.Error(), "annotation "+key+": ") || len(err.Error()) > 512 {
					t.Errorf("%s=%q: the error is %v, want at most 512 bytes that begin with the annotation", key, text,
						err)
				}
				continue
			}
			again, err := generator.ReadSettings(prefix, written(settings))
			if err != nil {
				t.Errorf("%s=%q: what was read is not valid: %v", key, text, err)
			}
			if diff := cmp.Diff(settings, again); diff != "" {
				t.Errorf("%s=%q: what was read means something else, want the same (-read +again):\n%s", key, text,
					diff)
			}
			for _, pointer := range settings.IgnoreFields {
				if !strings.HasPrefix(pointer, "/") || slices.Contains([]string{"/metadata", "/kind", "/apiVersion"}, pointer) {
					t.Errorf("%q: the field %q is accepted, want an error", text, pointer)
				}
			}
		}
	})
}

// written returns annotations that ask for s.
func written(s generator.Settings) map[string]string {
	m := map[string]string{}
	set := func(name, value string) {
		if value != "" {
			m[prefix+"/"+name] = value
		}
	}
	set(generator.AnnotationAdoptionPolicy, string(s.AdoptionPolicy))
	set(generator.AnnotationReconcilePolicy, string(s.ReconcilePolicy))
	set(generator.AnnotationUpdatePolicy, string(s.UpdatePolicy))
	set(generator.AnnotationDeletePolicy, string(s.DeletePolicy))
	set(generator.AnnotationPrunePolicy, string(s.PrunePolicy))
	set(generator.AnnotationApplyOrder, strconv.Itoa(int(s.ApplyOrder)))
	set(generator.AnnotationDeleteOrder, strconv.Itoa(int(s.DeleteOrder)))
	if s.PurgeOrder != nil {
		set(generator.AnnotationPurgeOrder, strconv.Itoa(int(*s.PurgeOrder)))
	}
	if s.ReapplyInterval != nil {
		set(generator.AnnotationReapplyInterval, s.ReapplyInterval.String())
	}
	var hints []string
	if s.StatusHint.HasObservedGeneration {
		hints = append(hints, "has-observed-generation")
	}
	if s.StatusHint.HasReadyCondition {
		hints = append(hints, "has-ready-condition")
	}
	if len(s.StatusHint.Conditions) > 0 {
		hints = append(hints, "conditions="+strings.Join(s.StatusHint.Conditions, ";"))
	}
	set(generator.AnnotationStatusHint, strings.Join(hints, ","))
	set(generator.AnnotationReadyWhen, s.ReadyWhen)
	set(generator.AnnotationIgnoreFields, strings.Join(s.IgnoreFields, ","))
	if s.IgnoreForeignInstances {
		set(generator.AnnotationForeignInstances, "ignore")
	}
	set(generator.AnnotationParticipation, string(s.Participation))
	set(generator.AnnotationPresence, string(s.Presence))
	return m
}

// TestSwitches: annotations that would not count because of another one are refused, and the error names both.
func TestSwitches(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        generator.Settings
		err         string
	}{
		"auxiliary": {
			annotations: map[string]string{"espalier.dev/participation": "auxiliary"},
			want:        generator.Settings{Participation: generator.ParticipationAuxiliary},
		},
		"defaults": {
			annotations: map[string]string{"espalier.dev/participation": "required", "espalier.dev/presence": "managed"},
		},
		"read-only": {
			annotations: map[string]string{"espalier.dev/presence": "readOnly", "x.example.com/if-absent": "ignore"},
			want:        generator.Settings{Presence: generator.PresenceReadOnly, IgnoreAbsence: true},
		},
		"if-absent alone": {
			annotations: map[string]string{"espalier.dev/if-absent": "wait"},
			err:         "annotation espalier.dev/if-absent: it needs presence: read-only",
		},
		"orphaned and auxiliary": {
			annotations: map[string]string{"espalier.dev/participation": "auxiliary", "x.example.com/presence": "orphaned"},
			err:         "annotation espalier.dev/participation: it contradicts x.example.com/presence: orphaned",
		},
		"read-only and written": {
			annotations: map[string]string{"espalier.dev/presence": "read-only", "espalier.dev/ignore-fields": "/spec/replicas"},
			err:         "annotation espalier.dev/ignore-fields: it contradicts espalier.dev/presence: read-only",
		},
		"unchecked and ready-when": {
			annotations: map[string]string{"espalier.dev/participation": "unchecked", "espalier.dev/ready-when": "true"},
			err:         "annotation espalier.dev/ready-when: it contradicts espalier.dev/participation: unchecked",
		},
		"no such word": {
			annotations: map[string]string{"espalier.dev/presence": "gone"},
			err:         `annotation espalier.dev/presence: must be one of managed, absent, orphaned, read-only: "gone"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generator.ReadSettings("x.example.com", test.annotations)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != test.err || !reflect.DeepEqual(got, test.want) {
				t.Errorf("the settings are %+v and the error %q, want %+v and %q", got, text, test.want, test.err)
			}
		})
	}
}
