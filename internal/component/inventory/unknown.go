package inventory

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// unknown has the members of a bucket that this release does not know: a later release wrote them before the operator
// was rolled back. They are stored again byte for byte, so that the later release finds them.
//
// Each text has members of one JSON object, in the order in which they were read, as in `"a":1,"b":{}`.
type unknown struct {
	header string
	// records has the members of records by key. Most buckets have none.
	records map[plan.Key]string
}

// of returns the members of the header and of these records.
func (u unknown) of(records []*apis.InventoryRecord) unknown {
	kept := unknown{header: u.header}
	if len(u.records) == 0 {
		return kept
	}
	kept.records = make(map[plan.Key]string)
	for _, record := range records {
		key := plan.KeyOf(*record)
		if members, ok := u.records[key]; ok {
			kept.records[key] = members
		}
	}
	return kept
}

// withMembers adds members to the JSON of an object that is not empty.
func withMembers(object []byte, members string) []byte {
	if members == "" {
		return object
	}
	object = append(bytes.TrimSuffix(object, []byte("}")), ',')
	return append(append(object, members...), '}')
}

var (
	headerMembers = membersOf(reflect.TypeFor[header]())
	recordMembers = membersOf(reflect.TypeFor[apis.InventoryRecord]())
)

// membersOf returns the names of the members of a struct as JSON.
func membersOf(object reflect.Type) []string {
	var names []string
	for i := range object.NumField() {
		name, _, _ := strings.Cut(object.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// decodeObject decodes an object with these members, and returns the other members that it has. Inside of a member, all
// have to be known: they would be lost.
func decodeObject[T any](object []byte, known []string) (decoded T, others string, err error) {
	if decoded, err = strict[T](object); err == nil {
		return decoded, "", nil
	}
	part, others, noObject := splitMembers(object, known)
	if noObject != nil || others == "" {
		return decoded, "", err
	}
	decoded, err = strict[T](part)
	return decoded, others, err
}

// splitMembers separates the members of an object that are known from all others.
func splitMembers(object []byte, known []string) (part []byte, others string, err error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, "", errors.Join(err, errNoObject)
	}
	var ours, theirs [][]byte
	for decoder.More() {
		before := decoder.InputOffset()
		name, err := decoder.Token()
		if err != nil {
			return nil, "", err
		}
		if err := decoder.Decode(new(json.RawMessage)); err != nil {
			return nil, "", err
		}
		member := bytes.TrimLeft(object[before:decoder.InputOffset()], ", \t\r\n")
		// The decoder of a struct takes names of any case.
		isKnown := slices.ContainsFunc(known, func(of string) bool { return strings.EqualFold(of, name.(string)) })
		if isKnown {
			ours = append(ours, member)
		} else {
			theirs = append(theirs, member)
		}
	}
	comma := []byte(",")
	part = slices.Concat([]byte("{"), bytes.Join(ours, comma), []byte("}"))
	return part, string(bytes.Join(theirs, comma)), nil
}

var errNoObject = errors.New("it is no JSON object")

// strict decodes a JSON object, and refuses members that T has not.
func strict[T any](object []byte) (decoded T, err error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.DisallowUnknownFields()
	return decoded, decoder.Decode(&decoded)
}
