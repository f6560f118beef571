"""A kubelet of few words: makes and removes pods over the CRI, as crictl does, which Debian lacks.

usage: cri.py pod NAME PARENT [KEY=VALUE...]           # annotations; prints the pod's id
       cri.py container POD NAME PARENT SHARES [ARG...]  # starts it; prints its id
       cri.py shares CONTAINER SHARES
       cri.py stop CONTAINER
       cri.py remove POD
"""

import sys

import api_pb2 as api
import api_pb2_grpc
import grpc

IMAGE = "docker.io/onbeat/test:1"

# A user without an account on the node, as most containers have one.
NOBODY = api.LinuxContainerSecurityContext(run_as_user=api.Int64Value(value=65532))


def pod_config(name, parent, annotations=()):
    """The host's network needs no CNI plugin, and its process numbers none of its own."""
    options = api.NamespaceOption(network=api.NODE, pid=api.CONTAINER)
    security = api.LinuxSandboxSecurityContext(namespace_options=options)
    return api.PodSandboxConfig(
        metadata=api.PodSandboxMetadata(name=name, uid=name, namespace="default"),
        annotations=dict(one.split("=", 1) for one in annotations),
        log_directory="/tmp",
        linux=api.LinuxPodSandboxConfig(cgroup_parent=parent, security_context=security),
    )


def main(command, *rest):
    service = api_pb2_grpc.RuntimeServiceStub(
        grpc.insecure_channel("unix:///run/containerd/containerd.sock")
    )
    if command == "pod":
        name, parent, *annotations = rest
        config = pod_config(name, parent, annotations)
        print(service.RunPodSandbox(api.RunPodSandboxRequest(config=config)).pod_sandbox_id)
    elif command == "container":
        pod, name, parent, shares, *args = rest
        resources = api.LinuxContainerResources(cpu_shares=int(shares))
        config = api.ContainerConfig(
            metadata=api.ContainerMetadata(name=name),
            image=api.ImageSpec(image=IMAGE),
            command=["/beat"],
            args=args,
            log_path=f"{name}.log",
            linux=api.LinuxContainerConfig(resources=resources, security_context=NOBODY),
        )
        status = service.PodSandboxStatus(api.PodSandboxStatusRequest(pod_sandbox_id=pod)).status
        request = api.CreateContainerRequest(
            pod_sandbox_id=pod,
            config=config,
            sandbox_config=pod_config(status.metadata.name, parent),
        )
        container = service.CreateContainer(request).container_id
        service.StartContainer(api.StartContainerRequest(container_id=container))
        print(container)
    elif command == "shares":
        container, shares = rest
        resources = api.LinuxContainerResources(cpu_shares=int(shares))
        request = api.UpdateContainerResourcesRequest(container_id=container, linux=resources)
        service.UpdateContainerResources(request)
    elif command == "stop":
        service.StopContainer(api.StopContainerRequest(container_id=rest[0], timeout=0))
    elif command == "remove":
        service.StopPodSandbox(api.StopPodSandboxRequest(pod_sandbox_id=rest[0]))
        service.RemovePodSandbox(api.RemovePodSandboxRequest(pod_sandbox_id=rest[0]))


main(*sys.argv[1:])
