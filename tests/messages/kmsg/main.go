// Command messages KAFKAS FILE has franz-go's kmsg write every API in every version and both directions that Kafka's own
// classes did not write into KAFKAS, in the form of KafkaMessages.java: those are the versions that Kafka 4 dropped.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"log"
	"math"
	"os"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The newest error code of Kafka 4.4.
const newestErrorCode = 136

const longestString = math.MaxInt16

var kinds = []string{"defaults", "full", "null", "empty", "minimum", "maximum", "many", "tags"}

type message interface {
	SetVersion(int16)
	IsFlexible() bool
	AppendTo([]byte) []byte
}

func main() {
	done := written(os.Args[1])
	file, err := os.Create(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(file)
	count := 0
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		request := kmsg.RequestForKey(key)
		if request == nil {
			continue
		}
		for version := int16(0); version <= request.MaxVersion(); version++ {
			if done[fmt.Sprint(key, " ", version)] {
				continue
			}
			writeAll(out, key, version, "request", func() message { return kmsg.RequestForKey(key) })
			writeAll(out, key, version, "response", func() message { return kmsg.ResponseForKey(key) })
			count += 2
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("kmsg wrote", count, "API x version x direction")
}

// written has the keys and versions for which a file has messages.
func written(path string) map[string]bool {
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	done := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.SplitN(line, " ", 3)
		done[words[0]+" "+words[1]] = true
	}
	return done
}

func writeAll(out *bufio.Writer, key, version int16, direction string, empty func() message) {
	for _, kind := range kinds {
		message := empty()
		message.SetVersion(version)
		maker := maker{kind: kind}
		if kind != "defaults" {
			maker.fill(reflect.ValueOf(message).Elem(), fmt.Sprintf("%d-%s", key, direction))
		}
		bytes := hex.EncodeToString(message.AppendTo(nil))
		if kind == "tags" {
			if !message.IsFlexible() {
				continue
			}
			addUnknownTags(reflect.ValueOf(message).Elem())
			bytes = hex.EncodeToString(message.AppendTo(nil)) + " " + bytes
		}
		fmt.Fprintln(out, key, version, direction, kind, bytes)
	}
}

// maker fills one message with values that follow from the place of a field.
type maker struct {
	kind          string
	hadLongString bool
}

func (m *maker) fill(v reflect.Value, place string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if name != "Version" && name != "UnknownTags" {
				m.fill(v.Field(i), place+"."+name)
			}
		}
	case reflect.Pointer:
		if m.kind == "null" {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		m.fill(v.Elem(), place)
	case reflect.Slice:
		m.slice(v, place)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(m.integer(0, math.MaxUint8, fmt.Sprint(place, i))))
		}
	case reflect.Bool:
		v.SetBool(m.kind != "empty" && m.kind != "minimum")
	case reflect.String:
		v.SetString(m.text(place))
	case reflect.Float64:
		v.SetFloat(float64(m.integer(math.MinInt64, math.MaxInt64, place)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(m.integer(0, 1<<v.Type().Bits()-1, place)))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		least, greatest := int64(-1)<<(v.Type().Bits()-1), int64(math.MaxInt64)>>(64-v.Type().Bits())
		if strings.HasSuffix(place, "ErrorCode") {
			least, greatest = -1, newestErrorCode
		}
		v.SetInt(m.integer(least, greatest, place))
	default:
		log.Fatalf("%s is of an unknown kind %s", place, v.Kind())
	}
}

func (m *maker) slice(v reflect.Value, place string) {
	if m.kind == "null" && v.Type().Elem().Kind() != reflect.Struct {
		v.SetZero()
		return
	}
	count := 2
	switch {
	case v.Type().Elem().Kind() == reflect.Uint8:
		count = map[string]int{"empty": 0, "minimum": 0, "maximum": 70_000, "full": 1200, "tags": 1200}[m.kind]
	case m.kind == "empty":
		count = 0
	case m.kind == "null", m.kind == "minimum", m.kind == "maximum":
		count = 1
	case m.kind == "many" && !strings.Contains(place, "["):
		count = 300
	}
	v.Set(reflect.MakeSlice(v.Type(), count, count))
	for i := range count {
		m.fill(v.Index(i), fmt.Sprintf("%s[%d]", place, i))
	}
}

func (m *maker) integer(least, greatest int64, place string) int64 {
	switch m.kind {
	case "empty":
		return 0
	case "minimum":
		return least
	case "maximum":
		return greatest
	}
	hash := fnv.New64()
	hash.Write([]byte(place))
	if least == math.MinInt64 {
		return int64(hash.Sum64())
	}
	return least + int64(hash.Sum64()%uint64(greatest-least+1))
}

func (m *maker) text(place string) string {
	switch {
	case m.kind == "empty" || m.kind == "minimum":
		return ""
	case m.kind != "maximum":
		return "é" + place
	case m.hadLongString:
		return strings.Repeat("ß→🦀", 20)
	}
	m.hadLongString = true
	return strings.Repeat("k", longestString)
}

// addUnknownTags puts two tags that no version knows into every struct of a message.
func addUnknownTags(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if tags, ok := v.Field(i).Addr().Interface().(*kmsg.Tags); ok {
				tags.Set(1000, []byte{1, 2, 3})
				tags.Set(math.MaxInt32-1, nil)
			} else {
				addUnknownTags(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			addUnknownTags(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			addUnknownTags(v.Index(i))
		}
	}
}
