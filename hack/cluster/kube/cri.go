package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runRemovePods removes every pod from a container runtime, the way the kubelet would: containers
// are killed, network namespaces and addresses given back. Taking a cluster down needs this, and
// Debian has no package with a client for the runtime's CRI socket.
func runRemovePods() int {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cri-remove-pods unix:///path/to/containerd.sock")
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := removePods(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "cri-remove-pods:", err)
		return 1
	}
	return 0
}

func removePods(ctx context.Context, socket string) error {
	connection, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	runtime := runtimeapi.NewRuntimeServiceClient(connection)
	list, err := runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	failures := make([]error, len(list.Items))
	var waitGroup sync.WaitGroup
	for i, pod := range list.Items {
		waitGroup.Add(1)
		go func() {
			defer waitGroup.Done()
			if err := removePod(ctx, runtime, pod.Id); err != nil {
				failures[i] = fmt.Errorf("pod %s/%s: %w", pod.Metadata.Namespace, pod.Metadata.Name, err)
			}
		}()
	}
	waitGroup.Wait()
	return errors.Join(failures...)
}

// removePod kills the containers of a pod, gives its network back and forgets it.
func removePod(ctx context.Context, runtime runtimeapi.RuntimeServiceClient, id string) error {
	if _, err := runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return err
	}
	_, err := runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}
