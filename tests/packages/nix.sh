#!/usr/bin/env bash
# Evaluates the flake with a nixpkgs of this script's own, which has what the flake asks of the real one, and runs the
# package's installation: the version is the checkout's, and what the module names is there. What the real nixpkgs and
# rustc make of it is not shown.
#
# ONBEAT is the binary, if not the one that cargo has built last.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v nix >/dev/null || {
    echo "there is no nix"
    exit 77
}
ONBEAT=$(realpath "${ONBEAT:-${TARGET_DIR:-target}/release/onbeat}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work
mkdir "$work/nixpkgs" "$work/flake"
git archive HEAD | tar -C "$work/flake" -x
cat >"$work/nixpkgs/flake.nix" <<'NIX'
{
  outputs =
    { self }:
    let
      lib = {
        genAttrs =
          names: make:
          builtins.listToAttrs (map (name: { inherit name; value = make name; }) names);
        cleanSource = source: source;
        licenses = lib.genAttrs [ "mit" "asl20" "gpl2Only" ] (name: name);
        platforms.linux = systems;
        mkEnableOption = description: { inherit description; };
        mkIf = condition: content: if condition then content else { };
        mkDefault = content: content;
        mkForce = content: content;
      };
      systems = [ "x86_64-linux" "aarch64-linux" ];
      made = system: name: more: derivation ({ inherit name system; builder = "none"; } // more);
      set =
        system:
        let
          inputs = [ "clang" "elfutils" "llvm" "pkg-config" "zlib" ];
          pkgs = lib.genAttrs inputs (name: made system name { }) // {
            inherit lib;
            stdenv.hostPlatform = { inherit system; };
            rustPlatform.buildRustPackage =
              arguments:
              made system "${arguments.pname}-${arguments.version}" (removeAttrs arguments [ "cargoLock" "meta" ])
              // { inherit (arguments) meta; };
            callPackage = file: more: import file (builtins.intersectAttrs (builtins.functionArgs (import file)) pkgs // more);
          };
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs systems set;
    };
}
NIX

evaluated() { # EXPRESSION, with flake, lib and pkgs; prints JSON
    nix --store "$work/store" --offline --extra-experimental-features 'nix-command flakes' eval --json --impure --expr "
        let
          nixpkgs = builtins.getFlake \"path:$work/nixpkgs\";
          flake = (import $work/flake/flake.nix).outputs { self = flake; inherit nixpkgs; };
          inherit (nixpkgs) lib;
          pkgs = nixpkgs.legacyPackages.x86_64-linux;
          module = enable: flake.nixosModules.default { inherit lib pkgs; config.services.onbeat.enable = enable; };
        in $1" 2>"$work/said" || {
        cat "$work/said" >&2
        exit 1
    }
}
is() { # WHAT IT-IS IT-SHOULD-BE
    [ "$2" = "$3" ] || {
        echo "the $1 is $2 where $3 belongs"
        exit 1
    }
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
for system in x86_64-linux aarch64-linux; do
    is name "$(evaluated "flake.packages.$system.default.name")" "\"onbeat-$version\""
    is system "$(evaluated "flake.packages.$system.default.system")" "\"$system\""
done
is program "$(evaluated flake.packages.x86_64-linux.default.meta.mainProgram)" '"onbeat"'
is 'module, off,' "$(evaluated '(module false).config')" '{}'
is unit "$(evaluated '(module true).config.systemd.services')" '{"onbeat":{"wantedBy":["multi-user.target"]}}'
is 'state of RealtimeKit' "$(evaluated '(module true).config.security.rtkit.enable')" false

# The package's own installation, of the binary that is there; installed.sh knows what has to be there.
mkdir -p "$work/flake/target/release"
cp "$ONBEAT" "$work/flake/target/release/onbeat"
out=$work/out
evaluated flake.packages.x86_64-linux.default.installPhase | python3 -c 'import json, sys; print(json.load(sys.stdin))' >"$work/install"
(cd "$work/flake" && env -u ONBEAT -u TARGET_DIR -u CARGO_TARGET_DIR out="$out" bash -euc \
    "runHook() { :; }; patchShebangs() { :; }; . '$work/install'" >/dev/null)
is answer "$("$out/bin/onbeat" --version)" "onbeat $version"
# The configuration that the module links to.
place=$(evaluated 'builtins.unsafeDiscardStringContext (module true).config.environment.etc."onbeat/onbeat.toml".source')
place=${place#*-onbeat-"$version"/}
[ -f "$out/${place%\"}" ] || {
    echo "the package has no $place"
    exit 1
}
if grep -rlE '/usr/(local/)?bin/onbeat' "$out/lib/systemd" "$out/share/dbus-1"; then
    echo 'these name a program outside of the package'
    exit 1
fi
