{
  description = "onbeat: keeps programs with deadlines on the beat on a busy machine";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.callPackage ./packaging/nix/package.nix { };
      });
      # services.onbeat.enable = true;
      nixosModules.default = import ./packaging/nix/module.nix self;
    };
}
