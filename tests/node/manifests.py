"""The DaemonSet is the chart's with its default values, and gives no container more than it needs. The dashboard asks
for nothing that is not there.

Where Helm has rendered the chart, its output is what counts; else the few values are filled in here.

usage: manifests.py FOLDER    # packaging/kubernetes, perhaps with rendered.yaml and rendered-rules.yaml of Helm's
"""

import pathlib
import re
import sys

import yaml

folder = pathlib.Path(sys.argv[1])
rendered = folder / "rendered.yaml"
if rendered.exists():
    (chart,) = [one for one in yaml.safe_load_all(rendered.read_text()) if one]
    with_rules = yaml.safe_load_all((folder / "rendered-rules.yaml").read_text())
    (rules,) = [one for one in with_rules if one and one["kind"] == "PrometheusRule"]
    assert rules["metadata"]["namespace"] == "onbeat"
    assert rules["spec"] == yaml.safe_load((folder / "chart/rules.yaml").read_text())
else:
    chart = (folder / "chart/templates/daemonset.yaml").read_text()
    for name, value in yaml.safe_load((folder / "chart/values.yaml").read_text()).items():
        chart = chart.replace("{{ .Values.%s }}" % name, str(value))
    chart = yaml.safe_load(chart.replace("{{ .Release.Namespace }}", "onbeat"))
namespace, plain = yaml.safe_load_all((folder / "daemonset.yaml").read_text())
assert plain == chart, "daemonset.yaml is not what the chart gives"
assert namespace["metadata"]["name"] == plain["metadata"]["namespace"]

unit = (folder / "onbeat.service").read_text()
needed = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1)
spec = plain["spec"]["template"]["spec"]
for container in spec["containers"]:
    context = container["securityContext"]
    added = context["capabilities"].get("add", [])
    expected = needed.replace("CAP_", "").split() if container["name"] == "service" else []
    assert added == expected, (container["name"], added, expected)
    assert context["capabilities"]["drop"] == ["ALL"]
    assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]

recorded = set(re.findall(r"record: (\S+)", (folder / "chart/rules.yaml").read_text()))
metrics = set(re.findall(r"^\| `(\w+)`", (folder / "metrics.md").read_text(), re.M))
dashboard = (folder / "kubernetes.json").read_text()
asked = set(re.findall(r"onbeat[:_][\w:]+", dashboard)) - {"onbeat-kubernetes"}
assert len(asked) > 4 and asked <= recorded | metrics, asked - recorded - metrics
print("manifests, rules and dashboard agree" + (", as Helm renders them" if rendered.exists() else ""))
