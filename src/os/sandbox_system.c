/* Lists the folders and devices that make up a Linux system, for any user. */
#include "os/sandbox.h"

#include <stddef.h>

const char *const sandbox_folders[] = {"/usr",
                                       "/bin",
                                       "/sbin",
                                       "/lib",
                                       "/lib32",
                                       "/lib64",
                                       "/libx32",
                                       "/etc",
                                       "/opt",
                                       "/nix/store",
                                       "/gnu/store",
                                       "/proc",
                                       "/sys/devices/system",
                                       "/sys/fs/cgroup",
                                       "/sys/kernel/mm",
                                       "/run/systemd/resolve",
                                       "/run/resolvconf",
                                       "/run/NetworkManager/resolv.conf",
                                       "/run/current-system",
                                       "/var/lib/ca-certificates",
                                       "/var/cache/fontconfig",
                                       "/snap/core22",
                                       NULL};

const char *const sandbox_devices[] = {
    "/dev/null",       "/dev/zero", "/dev/full", "/dev/random",    "/dev/urandom",
    "/dev/tty",        "/dev/ptmx", "/dev/pts",  "/dev/shm",       "/dev/kvm",
    "/dev/fuse",       "/dev/dri",  "/dev/kfd",  "/dev/nvidiactl", "/dev/nvidia0",
    "/dev/nvidia-uvm", NULL};
