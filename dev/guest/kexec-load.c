// SPDX-License-Identifier: GPL-2.0
/*
 * Start another kernel when all has been written to the file descriptor 3.
 *
 * usage: kexec-load KERNEL INITRD COMMAND-LINE
 */
#include <err.h>
#include <fcntl.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#ifndef SYS_kexec_file_load	/* i386 */
#define SYS_kexec_file_load	-1
#endif

static int open_file(const char *name)
{
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		err(1, "%s", name);
	return fd;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: kexec-load KERNEL INITRD COMMAND-LINE");
	if (syscall(SYS_kexec_file_load, open_file(argv[1]), open_file(argv[2]),
		    strlen(argv[3]) + 1, argv[3], 0))
		err(1, "%s", argv[1]);
	tcdrain(3);
	reboot(RB_KEXEC);
	err(1, "reboot");
}
