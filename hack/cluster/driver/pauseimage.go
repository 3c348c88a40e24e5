package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// pauseArchive returns a docker-archive with the pause image, built on first use.
func (f folders) pauseArchive() (string, error) {
	source := filepath.Join(f.source, "pause")
	files := []string{filepath.Join(source, "main.go"), filepath.Join(source, "Dockerfile")}
	key, err := hashFiles(files)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(f.cache, "pause-"+key)
	err = buildOnce(folder, "the pause image", func(target string) error {
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(target, "pause"), "./pause")
		build.Dir = f.source
		if err := runGo(build); err != nil {
			return err
		}
		if err := f.buildah("bud", "--isolation", "chroot", "--tag", pauseImage, "--file", filepath.Join(source, "Dockerfile"), target); err != nil {
			return err
		}
		return f.buildah("push", pauseImage, "docker-archive:"+filepath.Join(target, "pause.tar")+":"+pauseImage)
	})
	return filepath.Join(folder, "pause.tar"), err
}

// buildah works in a store of its own, the same as hack/image/build.sh uses.
func (f folders) buildah(arguments ...string) error {
	store := filepath.Join(f.cache, "buildah")
	if err := os.MkdirAll(store, 0o700); err != nil {
		return err
	}
	return execute("buildah", append([]string{"--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "overlay"}, arguments...)...)
}
