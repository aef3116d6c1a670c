// SPDX-License-Identifier: GPL-2.0
/*
 * Block many threads in accept().
 *
 * usage: blocked_callers THREADS
 *
 * Lets them return when its input ends, and prints how many did.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define STACK_BYTES	(64 * 1024)

static int listener;
static atomic_int returned;

static void *block(void *unused)
{
	if (accept(listener, NULL, NULL) < 0 && errno == EINVAL)
		atomic_fetch_add(&returned, 1);
	return NULL;
}

static void listen_anywhere(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&name, sizeof(name.sun_family)) ||
	    listen(listener, 1))
		err(1, "cannot listen");
}

int main(int argc, char **argv)
{
	int number = argc == 2 ? atoi(argv[1]) : 0;
	pthread_t *threads = calloc(number, sizeof(*threads));
	pthread_attr_t attr;
	char input;

	if (number <= 0 || !threads)
		errx(2, "usage: blocked_callers THREADS");
	listen_anywhere();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 0; i < number; i++) {
		errno = pthread_create(&threads[i], &attr, block, NULL);
		if (errno)
			err(1, "cannot create thread %d", i);
	}
	while (read(STDIN_FILENO, &input, 1) > 0)
		continue;
	if (shutdown(listener, SHUT_RDWR))
		err(1, "shutdown");
	for (int i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
	printf("%d returned\n", atomic_load(&returned));
	return 0;
}
