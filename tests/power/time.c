// Ends libFuzzer after the seconds of CPU time that CPU_SECONDS says, as if it had been interrupted: it counts seconds of the clock.
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static void stop(int signal) {
    (void)signal;
    raise(SIGINT);
}

__attribute__((constructor)) static void start(void) {
    const char *seconds = getenv("CPU_SECONDS");
    if (seconds) {
        double time = atof(seconds);
        struct itimerval timer = {{0, 0}, {0, 0}};
        timer.it_value.tv_sec = (time_t)time;
        timer.it_value.tv_usec = (suseconds_t)((time - (double)timer.it_value.tv_sec) * 1e6);
        signal(SIGPROF, stop);
        setitimer(ITIMER_PROF, &timer, NULL);
    }
}
