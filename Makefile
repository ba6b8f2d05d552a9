# Kelp's commands. Each does its own set-up; see README.md.
#
#   make run          a broker on SeaweedFS            PORT=9092 DATA=./data
#   make test         all tests                        PARTS="rust go cases clients crash"
#   make bench        Kelp, Kelp in weed, Apache Kafka in one run
#   make bench-messages  encoding beside the kafka-protocol crate
#   make conformance  the long suites
#   make install      header, libraries, kelp.pc       PREFIX=/usr/local
#   make header       writes include/kelp.h anew
#   make configs      writes docs/configs.md anew

PORT ?= 9092
DATA ?= ./data
PREFIX ?= /usr/local

.PHONY: run test bench bench-messages conformance install header configs lint

run:
	@PORT=$(PORT) DATA=$(DATA) scripts/run.sh

test:
	@scripts/test.sh $(PARTS)

bench:
	@scripts/need.sh rust go java && benches/peers/run.sh

bench-messages:
	@scripts/need.sh rust && CARGO_TARGET_DIR=$(CURDIR)/build/bench-messages \
	  cargo bench --locked --manifest-path benches/messages/Cargo.toml

conformance:
	@scripts/need.sh rust && scripts/conformance.sh

install:
	@scripts/install.sh $(PREFIX)

header:
	@scripts/header.sh

configs:
	@KELP_WRITE_PAGES=1 cargo test --locked --features cli,header --test configs

lint:
	@scripts/test.sh lint
