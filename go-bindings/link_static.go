//go:build !dynamic

package kelp

// The archive is the one of `cargo rustc --release --lib --crate-type staticlib`. Of libgcc's
// unwinder the static half is taken, so that the program needs no libgcc_s at run time.

/*
#cgo CFLAGS: -I${SRCDIR}/../include
#cgo LDFLAGS: ${SRCDIR}/../target/release/libkelp.a -l:libgcc_eh.a -lutil -lrt -lpthread -lm -ldl -lc
*/
import "C"
