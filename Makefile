# Everything a person does with this checkout. `make help` says what.
#
# Each of demo, test and check first installs what it needs (scripts/setup.sh says what that is).

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

# scripts/setup.sh may have put cargo there a moment ago.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help build lab demo test test-nightly test-vm test-vm-nightly test-packages check bench experiments measure programs strangers fuzz install uninstall deb \
	packages release clean

help:
	@echo 'make build        onbeat, in $(TARGET_DIR)/release; and make lab: onbeat-lab'
	@echo 'make demo         a film beside CPU hogs, without onbeat and with it'
	@echo 'make test         every test; as root also those on the live kernel'
	@echo 'make test-nightly the long forms: 10^6 hostile calls, 1000 kills, storms, an hour of soak, all builds of libonbeat, test-packages, rustdoc, test-vm-nightly, 10^8 inputs a fuzz target; PART=killed: one'
	@echo 'make test-vm      cases on a kernel in an emulated machine, in virtual time; CASE=name: one'
	@echo 'make test-vm-nightly  all of these on two kernels, and the schedulers on all from 6.16 on; KERNEL=7.3: one'
	@echo 'make check        format, lints, lines, imports'
	@echo 'make bench        the benchmarks'
	@echo 'make experiments  what there is to measure and compute, by name'
	@echo 'make measure      takes the tables again that are not of this code, and goes on where it was ended; STEP=name, MINUTES=180, LIST=1'
	@echo 'make strangers    forty programs of every runtime, idle and beside hogs; an hour. ARGS=--help: parts of it'
	@echo 'make programs     four of these, in two minutes'
	@echo 'make fuzz         every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds'
	@echo 'make install      the binary, the service and libonbeat, man pages, completions under PREFIX=$(PREFIX)'
	@echo 'make deb          Debian packages, in $(TARGET_DIR)/deb'
	@echo 'make packages     these for arm64, too, and for Arch, Fedora and all others, in $(TARGET_DIR)/packages; ONLY=arch: one'
	@echo 'make test-packages  all of these in fresh roots, and that builds and releases are reproducible'
	@echo 'make release      source tarball, SBOM and checksums of a version, in $(TARGET_DIR)/release-VERSION'

build:
	scripts/setup.sh build
	cargo build --release -p onbeat

lab:
	scripts/setup.sh build
	cd papers && cargo build --release -p onbeat-lab

demo:
	scripts/setup.sh demo
	cargo build --release -p onbeat
	cd papers && cargo build --release -p onbeat-experiments -p onbeat-lab
	mkdir -p papers/experiments/out
	scripts/as-root.sh $(TARGET_DIR)/release/onbeat-experiments demo

test:
	scripts/setup.sh test
	scripts/test.sh

test-nightly:
	scripts/setup.sh test
	scripts/setup.sh cross
	scripts/setup.sh release
	scripts/setup.sh fuzz
	scripts/as-root.sh env PATH="$$PATH" \
		$(foreach name,HOSTILE_CALLS KILLS STORMS SOAK_MINUTES FUZZ_RUNS FUZZ_LONGEST,$(if $($(name)),$(name)=$($(name)))) \
		scripts/nightly.sh $(PART)

test-vm:
	scripts/setup.sh vm
	cargo build --release -p onbeat
	cd papers && cargo build --release -p onbeat-experiments -p onbeat-lab
	ONBEAT_VM_PATH='$(abspath $(TARGET_DIR))/release' tests/vm/run.sh --jobs 2 $(CASE)

test-vm-nightly:
	scripts/setup.sh vm
	cargo build --release -p onbeat
	cd papers && cargo build --release -p onbeat-experiments -p onbeat-lab
	ONBEAT_VM_PATH='$(abspath $(TARGET_DIR))/release' tests/vm/nightly.sh $(KERNEL)

test-packages:
	scripts/setup.sh cross
	scripts/setup.sh release
	cargo build --release -p onbeat -p onbeat-node
	scripts/as-root.sh env TARGET_DIR='$(abspath $(TARGET_DIR))' PATH="$$PATH" tests/packages/run.sh

check:
	scripts/setup.sh check
	scripts/check.sh

bench:
	scripts/setup.sh experiments
	cargo bench --workspace
	$(MAKE) -C libonbeat bench RUN='$(abspath scripts/as-root.sh)'

experiments:
	scripts/setup.sh experiments
	cargo build --release -p onbeat
	cd papers && cargo build --release -p onbeat-experiments -p onbeat-lab
	mkdir -p papers/experiments/out
	scripts/as-root.sh $(TARGET_DIR)/release/onbeat-experiments $(or $(NAME),list)

measure:
	scripts/setup.sh experiments
	cargo build --release -p onbeat
	cd papers && cargo build --release -p onbeat-experiments -p onbeat-lab
	mkdir -p papers/experiments/out
	scripts/as-root.sh $(TARGET_DIR)/release/onbeat-experiments measure $(if $(LIST),--list) $(if $(MINUTES),--minutes $(MINUTES)) $(STEP)

programs:
	$(MAKE) strangers ARGS='--programs mpv,gst,browser-like,transcode --seconds 4 --rounds 1'

strangers:
	scripts/setup.sh strangers
	cargo build --release -p onbeat
	scripts/as-root.sh papers/experiments/strangers/strangers.py --binary $(TARGET_DIR)/release/onbeat $(ARGS)

fuzz:
	scripts/setup.sh fuzz
	scripts/fuzz.sh $(FUZZ_SECONDS)

install:
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' TARGET_DIR='$(TARGET_DIR)' scripts/install.sh

uninstall:
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh --remove

deb:
	scripts/setup.sh packages
	TARGET_DIR='$(TARGET_DIR)' scripts/deb.sh

packages:
	scripts/setup.sh cross
	TARGET_DIR='$(TARGET_DIR)' scripts/packages.sh $(ONLY)

release:
	scripts/setup.sh release
	TARGET_DIR='$(TARGET_DIR)' scripts/release.sh

clean:
	cargo clean
	rm -rf papers/experiments/out
