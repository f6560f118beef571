# Everything that scripts/install.sh installs, below one prefix.
{
  lib,
  rustPlatform,
  clang,
  elfutils,
  llvm,
  pkg-config,
  zlib,
}:

rustPlatform.buildRustPackage {
  pname = "onbeat";
  version = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).workspace.package.version;
  src = lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;
  cargoBuildFlags = [
    "-p"
    "onbeat"
  ];
  nativeBuildInputs = [
    clang
    llvm
    pkg-config
  ];
  buildInputs = [
    elfutils
    zlib
  ];
  # The flags with which nixpkgs hardens programs are none of a BPF program's.
  hardeningDisable = [
    "zerocallusedregs"
    "stackprotector"
  ];
  # The tests need a kernel of their own: `make test`.
  doCheck = false;
  installPhase = ''
    runHook preInstall
    patchShebangs scripts
    ONBEAT=$(find target -path '*/release/onbeat' -type f | head -n 1) \
      PREFIX=$out SERVICE=prefix scripts/install.sh
    runHook postInstall
  '';
  meta = {
    description = "Keeps programs with deadlines on the beat on a busy machine";
    license = with lib.licenses; [
      mit
      asl20
      gpl2Only
    ];
    mainProgram = "onbeat";
    platforms = lib.platforms.linux;
  };
}
