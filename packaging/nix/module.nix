# The service for ordinary users.
self:
{
  config,
  lib,
  pkgs,
  ...
}:
let
  onbeat = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
in
{
  options.services.onbeat.enable = lib.mkEnableOption "reservations of CPU time for programs with deadlines";

  config = lib.mkIf config.services.onbeat.enable {
    environment.systemPackages = [ onbeat ];
    environment.etc."onbeat/onbeat.toml".source = lib.mkDefault "${onbeat}/etc/onbeat/onbeat.toml";
    services.dbus.packages = [ onbeat ];
    systemd.packages = [ onbeat ];
    # NixOS does not read a unit's section Install. The unit speaks for RealtimeKit, which is therefore off.
    systemd.services.onbeat.wantedBy = [ "multi-user.target" ];
    systemd.services.onbeat.aliases = [ "dbus-org.onbeat.Manager1.service" ];
    security.rtkit.enable = lib.mkForce false;
  };
}
