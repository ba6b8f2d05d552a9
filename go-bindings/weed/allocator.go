package main

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Few arenas: else each thread of Kelp's that comes for blocking work has its own, which keeps what it once needed.
static void few_arenas(void) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);
#endif
}
*/
import "C"

// Before Kelp starts threads. docs/performance.md has the figures.
func init() { C.few_arenas() }
