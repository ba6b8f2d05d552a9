/* What Go cannot say itself: tables of C functions, and a handle where C has a pointer. */
#ifndef KELP_GO_BRIDGE_H
#define KELP_GO_BRIDGE_H

#include "kelp.h"

/* What a host in Go offers: bits of kelp_go_new's `offers`. */
#define KELP_GO_OBJECTS 1u
#define KELP_GO_STORAGE 2u
#define KELP_GO_TIME_INDEX 4u
#define KELP_GO_COORDINATORS 8u
#define KELP_GO_LOG 16u
#define KELP_GO_STATE 32u
#define KELP_GO_GROUPS 64u
#define KELP_GO_ALTER_TOPICS 128u
#define KELP_GO_TOPICS_CHANGED 256u

kelp_status kelp_go_new(uintptr_t host, uint32_t offers, const char *properties,
                        uint32_t io_threads, kelp_engine **engine, char *error,
                        size_t error_capacity);

#endif
