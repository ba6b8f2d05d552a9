//go:build dynamic

package kelp

// The installed library, as `make install` leaves it; PKG_CONFIG_PATH says where.

/*
#cgo pkg-config: kelp
*/
import "C"
