/* One launch for a campaign over all nodes: rounds of pairs, one rank on each node.
 *
 *   kernel SCHEDULE RECORD
 *
 * SCHEDULE is what fabricproof.pairs.campaign.plan writes.  RECORD gets JSON lines, each round whole
 * and on the disk before the next one begins, so that a killed job loses one round.
 *
 * The loops are those of OSU Micro-Benchmarks 7.4 (osu_latency, osu_bw, osu_bibw), so that numbers
 * compare: a window of messages, then an answer of four bytes; all repetitions over all their time.
 * Ranks that wait for others sleep: where nodes share cores, they leave them to those who measure.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS /* tests have another */
#define SYS "/sys"
#endif

#if defined STANDARD_ABI && !(MPI_ABI_VERSION >= 1)
#error "this mpi.h is none of the standard MPI ABI"
#endif

enum { NAME = 80, STEPS = 32, LISTED = 64, MOST_WINDOW = 1024, FEWEST = 3, LONGEST_NAP_US = 1000 };
enum { TAG_SYNC = 1, TAG_DATA = 2, TAG_ANSWER = 3, TAG_COUNT = 4 };

struct step {
    char mode[16]; /* pingpong, uni, bi */
    int size, window, most, warmups;
    double seconds; /* of each pair and direction, after the warm-up */
};
struct partner {
    int rank, is_first; /* rank -1: a bye */
    char name[NAME];
};
struct counter {
    char interface[NAME], name[48];
    long long before;
};

static int rank, ranks, num_steps, nap_us, limit_seconds;
static struct step steps[STEPS];
static char node[NAME], doing[3 * NAME] = "starting";
static char *out, *message_out, *message_in;
static size_t out_used, out_size;
static struct counter *counters;
static int num_counters, max_counters;
static MPI_Request requests[2 * MOST_WINDOW];

static void die(const char *format, ...) {
    va_list words;
    fprintf(stderr, "fabricproof kernel on %s: ", node);
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    fprintf(stderr, "\n");
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 74);
    _exit(74);
}

/* A pair that hangs must not hang the campaign: the job ends, and says who hung. */
static void too_long(int signal_number) {
    (void)signal_number;
    char line[5 * NAME];
    int used = snprintf(line, sizeof line, "fabricproof kernel: stuck %s %s\n", node, doing);
    if (write(2, line, (size_t)used) < 0) _exit(75);
    _exit(75);
}

static void say(const char *format, ...) {
    for (;;) {
        va_list words;
        va_start(words, format);
        int used = vsnprintf(out + out_used, out_size - out_used, format, words);
        va_end(words);
        if (used < 0) die("cannot write a record");
        if (out_used + (size_t)used + 1 < out_size) {
            out_used += (size_t)used;
            return;
        }
        out_size = 2 * (out_size + (size_t)used + 1024);
        out = realloc(out, out_size);
        if (!out) die("no memory for the record");
    }
}

static void nap(int microseconds) {
    struct timespec pause = {0, 1000L * microseconds};
    nanosleep(&pause, NULL);
}

/* Wait for all ranks without taking a core from those that still measure. */
static void wait_for_all(void) {
    MPI_Request request;
    int done = 0, pause = 50;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        nap(pause);
        if (pause < LONGEST_NAP_US) pause += pause / 2;
    }
}

static void wait_for(int count) {
    if (nap_us == 0) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        return;
    }
    for (int done = 0;;) {
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (done) return;
        nap(nap_us);
    }
}

/* ---- counters: the names are those of rank.sh, which the same reader reads */

static const char *NET[] = {"tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "tx_errors",
    "rx_errors", "tx_dropped", "rx_dropped", "rx_crc_errors", "rx_missed_errors", NULL};
static const char *LINK[] = {"carrier_changes", NULL};
static const char *PORT[] = {"port_xmit_data", "port_rcv_data", "port_xmit_packets",
    "port_rcv_packets", "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
    "port_xmit_discards", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
    "VL15_dropped", "port_xmit_wait", NULL};
static const char *PORT_HW[] = {"np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets",
    "out_of_sequence", "duplicate_request", "packet_seq_err", "local_ack_timeout_err",
    "rnr_nak_retry_err", "roce_adp_retrans", "rx_icrc_encapsulated", "rx_drops", "retrans_pkts",
    "to_retransmits", "seq_err_naks_rcvd", "rnr_naks_rcvd", "RetransSegs", "tcpRetransSegs",
    "cnpSent", "cnpHandled", "RxECNMrkd", NULL};
static const char *EFA[] = {"tx_bytes", "rx_bytes", "tx_pkts", "rx_pkts", "send_bytes",
    "recv_bytes", "rdma_read_bytes", "rdma_read_resp_bytes", "rdma_write_bytes",
    "rdma_write_recv_bytes", "ip4InOctets", "ip4OutOctets", "ip6InOctets", "ip6OutOctets",
    "ip4InPkts", "ip4OutPkts", "ip6InPkts", "ip6OutPkts", NULL};
static const char *SOFT[] = {"port_xmit_data", "port_rcv_data", "port_xmit_packets",
    "port_rcv_packets", NULL};
static const char *SOFT_BYTES[] = {"sent_bytes", "rcvd_bytes", "sent_pkts", "rcvd_pkts", NULL};
static const char *SOFT_HW[] = {"link_downed", "retry_exceeded_err", "retry_rnr_exceeded_err",
    "send_err", "completer_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_seq_err",
    "rcvd_rnr_err", "send_rnr_err", NULL};
static const char *CXI[] = {"hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets",
    "hni_pkts_sent_by_tc_0", "hni_pkts_sent_by_tc_1", "hni_pkts_sent_by_tc_2",
    "hni_pkts_sent_by_tc_3", "hni_pkts_sent_by_tc_4", "hni_pkts_sent_by_tc_5",
    "hni_pkts_sent_by_tc_6", "hni_pkts_sent_by_tc_7", "hni_pkts_recv_by_tc_0",
    "hni_pkts_recv_by_tc_1", "hni_pkts_recv_by_tc_2", "hni_pkts_recv_by_tc_3",
    "hni_pkts_recv_by_tc_4", "hni_pkts_recv_by_tc_5", "hni_pkts_recv_by_tc_6",
    "hni_pkts_recv_by_tc_7", "pct_spt_timeouts", NULL};
static const char *TCP_NAMES[] = {"ForwDatagrams", "OutSegs", "RetransSegs", "ListenDrops",
    "TCPSynRetrans", "TCPDSACKRecv", "TCPDSACKOfoRecv", "TCPDSACKRecvSegs", "TCPOFOQueue", NULL};

typedef void take(const char *interface, const char *name, long long value);

static int first_word(const char *path, char *word, size_t size) {
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char format[16];
    snprintf(format, sizeof format, "%%%zus", size - 1);
    int found = fscanf(file, format, word) == 1;
    fclose(file);
    for (char *at = word; found && *at; at++)
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\') return 0;
    return found;
}

static void take_files(const char *folder, const char **names, const char *interface, take *give) {
    char path[1024], word[32];
    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", folder, *names);
        if (first_word(path, word, sizeof word) && isdigit((unsigned char)word[0]))
            give(interface, *names, strtoll(word, NULL, 10));
    }
}

static void take_port(const char *port, const char *interface, take *give) {
    char folder[600], hardware[600], path[700];
    snprintf(folder, sizeof folder, "%s/counters", port);
    snprintf(hardware, sizeof hardware, "%s/hw_counters", port);
    snprintf(path, sizeof path, "%s/port_xmit_data", folder);
    int counts = access(path, R_OK) == 0;
    snprintf(path, sizeof path, "%s/../../parent", port);
    int is_soft = access(path, F_OK) == 0;
    take_files(folder, is_soft ? SOFT : PORT, interface, give);
    if (!counts) take_files(hardware, is_soft ? SOFT_BYTES : EFA, interface, give);
    take_files(hardware, is_soft ? SOFT_HW : PORT_HW, interface, give);
}

static int is_plain(const char *name) {
    if (name[0] == '.' || strlen(name) >= NAME / 2) return 0;
    for (; *name; name++)
        if (*name <= ' ' || *name > '~' || *name == '"' || *name == '\\') return 0;
    return 1;
}

/* Calls visit(PATH, INTERFACE) for each interface, with is_port 1 for each port of a device, and
 * with 2 for each device of Slingshot. */
typedef void visit(const char *path, const char *interface, int is_port, take *give);

static void each_interface(visit *see, take *give) {
    char path[512], interface[NAME];
    struct dirent *entry, *inner;
    DIR *all = opendir(SYS "/class/net"), *ports;
    while (all && (entry = readdir(all))) {
        snprintf(path, sizeof path, SYS "/class/net/%.200s/statistics", entry->d_name);
        if (!is_plain(entry->d_name) || access(path, F_OK)) continue;
        *strrchr(path, '/') = 0;
        see(path, entry->d_name, 0, give);
    }
    if (all) closedir(all);
    all = opendir(SYS "/class/infiniband");
    while (all && (entry = readdir(all))) {
        if (!is_plain(entry->d_name)) continue;
        snprintf(path, sizeof path, SYS "/class/infiniband/%.200s/ports", entry->d_name);
        ports = opendir(path);
        while (ports && (inner = readdir(ports))) {
            if (!is_plain(inner->d_name)) continue;
            snprintf(path, sizeof path, SYS "/class/infiniband/%.200s/ports/%.40s", entry->d_name,
                inner->d_name);
            snprintf(interface, sizeof interface, "%.40s:%.30s", entry->d_name, inner->d_name);
            see(path, interface, 1, give);
        }
        if (ports) closedir(ports);
    }
    if (all) closedir(all);
    all = opendir(SYS "/class/cxi");
    while (all && (entry = readdir(all))) {
        if (!is_plain(entry->d_name) || strncmp(entry->d_name, "cxi", 3)) continue;
        snprintf(path, sizeof path, SYS "/class/cxi/%.200s/device", entry->d_name);
        see(path, entry->d_name, 2, give);
    }
    if (all) closedir(all);
}

static void see_counters(const char *path, const char *interface, int is_port, take *give) {
    char folder[600];
    if (is_port == 1) {
        take_port(path, interface, give);
        return;
    }
    if (is_port == 2) { /* its values are VALUE@TIME */
        snprintf(folder, sizeof folder, "%s/telemetry", path);
        take_files(folder, CXI, interface, give);
        return;
    }
    snprintf(folder, sizeof folder, "%s/statistics", path);
    take_files(folder, NET, interface, give);
    take_files(path, LINK, interface, give);
}

/* TCP of this node: a line of names, then a line of numbers. */
static void take_tcp(const char *path, const char *protocol, take *give) {
    static char names[8192], numbers[8192];
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fgets(names, sizeof names, file) && fgets(numbers, sizeof numbers, file)) {
        char *one, *other, *name, *number;
        if (strncmp(names, protocol, strlen(protocol))) continue;
        name = strtok_r(names, " \n", &one);
        number = strtok_r(numbers, " \n", &other);
        while (name && number) {
            for (const char **wanted = TCP_NAMES; *wanted; wanted++)
                if (!strcmp(name, *wanted)) give("node/tcp", name, strtoll(number, NULL, 10));
            name = strtok_r(NULL, " \n", &one);
            number = strtok_r(NULL, " \n", &other);
        }
    }
    fclose(file);
}

/* What the CPUs that this rank may run on did, what it took of them itself, in ticks, and how long
 * anything waited for a CPU of this node, where the kernel keeps it. */
static void take_cores(take *give) {
    static char text[512];
    long long busy = 0, idle = 0, stolen = 0;
    cpu_set_t mine;
    struct tms own;
    struct timeval now;
    FILE *file = fopen("/proc/stat", "r");
    if (!file || sched_getaffinity(0, sizeof mine, &mine)) {
        if (file) fclose(file);
        return;
    }
    while (fgets(text, sizeof text, file)) {
        int cpu;
        long long user, nice, system, rest, io, irq, soft, steal = 0;
        /* Interrupts are nobody's: the network's own work is there. */
        if (sscanf(text, "cpu%d %lld %lld %lld %lld %lld %lld %lld %lld", &cpu, &user, &nice,
                &system, &rest, &io, &irq, &soft, &steal) < 8 ||
            cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &mine))
            continue;
        busy += user + nice + system, idle += rest, stolen += steal;
    }
    fclose(file);
    times(&own);
    gettimeofday(&now, NULL);
    give("node/cores", "busy_ticks", busy);
    give("node/cores", "idle_ticks", idle);
    give("node/cores", "steal_ticks", stolen);
    give("node/cores", "own_ticks", (long long)(own.tms_utime + own.tms_stime));
    give("node/cores", "clock_us", 1000000LL * now.tv_sec + now.tv_usec);
    if ((file = fopen("/proc/pressure/cpu", "r"))) {
        char *total = fgets(text, sizeof text, file) ? strstr(text, "total=") : NULL;
        if (total) give("node/cores", "waited_us", strtoll(total + 6, NULL, 10));
        fclose(file);
    }
}

static void read_counters(take *give) {
    take_cores(give);
    each_interface(see_counters, give);
    take_tcp("/proc/net/snmp", "Ip:", give);
    take_tcp("/proc/net/snmp", "Tcp:", give);
    take_tcp("/proc/net/netstat", "TcpExt:", give);
}

static void remember(const char *interface, const char *name, long long value) {
    if (num_counters == max_counters) {
        max_counters = 2 * max_counters + 256;
        counters = realloc(counters, (size_t)max_counters * sizeof *counters);
        if (!counters) die("no memory for counters");
    }
    struct counter *entry = &counters[num_counters++];
    snprintf(entry->interface, sizeof entry->interface, "%s", interface);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->before = value;
}

static char last_interface[NAME];

static void say_counter(const char *interface, const char *name, long long value) {
    if (strcmp(last_interface, interface)) {
        say("%s\"%s\":{", last_interface[0] ? "}," : "", interface);
        snprintf(last_interface, sizeof last_interface, "%s", interface);
    } else
        say(",");
    say("\"%s\":%lld", name, value);
}

/* "before": all counters; "after": those that moved, and with null those that cannot be read. */
static void say_moved(const char *interface, const char *name, long long value) {
    for (int at = 0; at < num_counters; at++) {
        struct counter *entry = &counters[at];
        if (strcmp(entry->interface, interface) || strcmp(entry->name, name)) continue;
        entry->name[0] = 0; /* it is seen again */
        if (entry->before != value) say_counter(interface, name, value);
        return;
    }
    say_counter(interface, name, value);
}

static void say_counters(int round) {
    say("{\"record\":\"counters\",\"round\":%d,\"node\":\"%s\",\"before\":{", round, node);
    last_interface[0] = 0;
    for (int at = 0; at < num_counters; at++)
        say_counter(counters[at].interface, counters[at].name, counters[at].before);
    say("%s},\"after\":{", last_interface[0] ? "}" : "");
    last_interface[0] = 0;
    read_counters(say_moved);
    say("%s},\"gone\":[", last_interface[0] ? "}" : "");
    const char *comma = "";
    for (int at = 0; at < num_counters; at++) /* found by its empty name: it was seen again */
        if (counters[at].name[0]) {
            say("%s[\"%s\",\"%s\"]", comma, counters[at].interface, counters[at].name);
            comma = ",";
        }
    say("]}\n");
}

static void see_facts(const char *path, const char *interface, int is_port, take *give) {
    static const char *net[] = {"address", "mtu", "operstate", NULL};
    static const char *port[] = {"../../parent", "state", "rate", "link_layer",
        "../../device/uevent", NULL};
    char file[600], word[NAME];
    const char *comma = "";
    (void)give;
    say("%s\"%s\":{", last_interface[0] ? "," : "", interface);
    snprintf(last_interface, sizeof last_interface, "%s", interface);
    if (is_port == 2) { /* its interface: what that moves, the device counts */
        struct dirent *entry = NULL;
        snprintf(file, sizeof file, "%s/net", path);
        DIR *all = opendir(file);
        while (all && (entry = readdir(all)) && !is_plain(entry->d_name)) continue;
        if (entry) say("\"netdev\":\"%s\"", entry->d_name);
        if (all) closedir(all);
        say("}");
        return;
    }
    for (const char **name = is_port ? port : net; *name; name++) {
        snprintf(file, sizeof file, "%s/%s", path, *name);
        const char *slash = strrchr(*name, '/');
        int is_there = first_word(file, word, sizeof word);
        /* A port over no interface that is told is a Soft-RoCE port all the same. */
        if (!is_there && !(slash && access(file, F_OK) == 0)) continue;
        say("%s\"%s\":\"%s\"", comma, slash ? slash + 1 : *name, is_there ? word : "");
        comma = ",";
    }
    say("}");
}

/* ---- what is measured */

/* Of so many times in order, which one is at or above a part of them: the nearest rank. */
static int percentile(int count, int percent) {
    return (int)(((long long)percent * count + 99) / 100) - 1;
}

static void summarize(int round, const struct step *step, const char *to, int count,
    double *times_us) {
    double total = 0;
    for (int at = 0; at < count; at++) total += times_us[at];
    say("{\"record\":\"value\",\"round\":%d,\"mode\":\"%s\",\"from\":\"%s\",\"to\":\"%s\","
        "\"size\":%d,\"window\":%d,\"warmups\":%d,\"repetitions\":%d,\"total_us\":%.3f,",
        round, step->mode, node, to, step->size, step->window, step->warmups, count, total);
    if (count <= LISTED) {
        say("\"times_us\":[");
        for (int at = 0; at < count; at++) say("%s%.3f", at ? "," : "", times_us[at]);
        say("],");
    }
    for (int gap = count / 2; gap > 0; gap /= 2) /* Shell's sort */
        for (int at = gap; at < count; at++)
            for (int back = at - gap; back >= 0 && times_us[back] > times_us[back + gap];
                 back -= gap) {
                double swap = times_us[back];
                times_us[back] = times_us[back + gap];
                times_us[back + gap] = swap;
            }
    say("\"least_us\":%.3f,\"median_us\":%.3f,\"p95_us\":%.3f,\"p99_us\":%.3f,\"most_us\":%.3f}\n",
        times_us[0], times_us[count / 2], times_us[percentile(count, 95)],
        times_us[percentile(count, 99)], times_us[count - 1]);
}

/* One repetition; `leads` is who sends first, and whose time counts. */
static void repeat(const struct step *step, int peer, int leads) {
    char answer[4] = {0};
    int sends = leads || step->mode[0] == 'b', receives = !leads || step->mode[0] == 'b', used = 0;
    if (step->mode[0] == 'p') {
        if (leads) MPI_Send(message_out, step->size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
        MPI_Recv(message_in, step->size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
            MPI_STATUS_IGNORE);
        if (!leads) MPI_Send(message_out, step->size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
        return;
    }
    for (int at = 0; receives && at < step->window; at++)
        MPI_Irecv(message_in, step->size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
            &requests[used++]);
    for (int at = 0; sends && at < step->window; at++)
        MPI_Isend(message_out, step->size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
            &requests[used++]);
    wait_for(used);
    if (leads)
        MPI_Irecv(answer, 4, MPI_CHAR, peer, TAG_ANSWER, MPI_COMM_WORLD, &requests[0]);
    else
        MPI_Isend(answer, 4, MPI_CHAR, peer, TAG_ANSWER, MPI_COMM_WORLD, &requests[0]);
    wait_for(1);
}

static void meet(int peer) {
    char mine = 0, yours = 0;
    MPI_Irecv(&yours, 1, MPI_CHAR, peer, TAG_SYNC, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&mine, 1, MPI_CHAR, peer, TAG_SYNC, MPI_COMM_WORLD, &requests[1]);
    wait_for(2);
}

static double now_us(void) { return 1e6 * MPI_Wtime(); }

/* As many repetitions as fit the time, by how long the last ones of the warm-up took. */
static int agree(const struct step *step, int peer, int leads, double warm_us) {
    int count = 0;
    if (leads) {
        double fitting = warm_us > 0 ? 1e6 * step->seconds / warm_us : step->most;
        count = fitting < FEWEST ? FEWEST : fitting > step->most ? step->most : (int)fitting;
        MPI_Isend(&count, 1, MPI_INT, peer, TAG_COUNT, MPI_COMM_WORLD, &requests[0]);
    } else
        MPI_Irecv(&count, 1, MPI_INT, peer, TAG_COUNT, MPI_COMM_WORLD, &requests[0]);
    wait_for(1);
    return count;
}

static void measure(int round, const struct step *step, const struct partner *peer, int leads) {
    meet(peer->rank);
    double begin = now_us(), warm = 0;
    for (int at = 0; at < step->warmups; at++) {
        if (at == step->warmups / 2) begin = now_us(); /* the first ones open connections */
        repeat(step, peer->rank, leads);
    }
    if (step->warmups) warm = (now_us() - begin) / (step->warmups - step->warmups / 2);
    int count = agree(step, peer->rank, leads, warm);
    double *times_us = malloc((size_t)count * sizeof *times_us);
    if (!times_us) die("no memory for times");
    meet(peer->rank);
    double last = now_us();
    for (int at = 0; at < count; at++) {
        repeat(step, peer->rank, leads);
        double now = now_us();
        times_us[at] = now - last;
        last = now;
    }
    if (leads) summarize(round, step, peer->name, count, times_us);
    free(times_us);
}

static void run_round(int round, const struct partner *peer) {
    num_counters = 0;
    read_counters(remember);
    wait_for_all();
    for (int at = 0; at < num_steps; at++) {
        const struct step *step = &steps[at];
        /* What goes one way is measured each way, all pairs the same way round at a time. */
        for (int turn = 0; turn < (step->mode[0] == 'u' ? 2 : 1); turn++) {
            snprintf(doing, sizeof doing, "with %.79s in round %d, %.15s of %d bytes", peer->name, round,
                step->mode, step->size);
            if (peer->rank >= 0) measure(round, step, peer, peer->is_first != turn);
            snprintf(doing, sizeof doing, "after round %d", round);
            wait_for_all();
        }
    }
    if (peer->rank >= 0) say_counters(round);
}

/* ---- the schedule, which rank 0 reads, and the record, which it writes */

static FILE *schedule, *record;
static char *line;
static size_t line_size;
static char (*names)[NAME], (*rank_names)[NAME];
static int num_names, *rank_of;
static struct partner *all;

static void read_head(const char *path) {
    if (!(schedule = fopen(path, "r"))) die("cannot read the schedule %s", path);
    int version = 0, room = 0;
    if (getline(&line, &line_size, schedule) < 0 ||
        sscanf(line, "fabricproof-pairs %d", &version) != 1 || version != 1)
        die("%s is no schedule of version 1", path);
    while (getline(&line, &line_size, schedule) >= 0) {
        struct step *step = &steps[num_steps];
        if (sscanf(line, "nap_us %d", &nap_us) == 1) continue;
        if (sscanf(line, "round_seconds %d", &limit_seconds) == 1) continue;
        if (!strncmp(line, "node ", 5)) {
            if (num_names == room) {
                room = 2 * room + 64;
                if (!(names = realloc(names, (size_t)room * sizeof *names))) die("no memory");
            }
            if (sscanf(line, "node %79s", names[num_names++]) != 1) die("a node without name");
        } else if (num_steps < STEPS &&
            sscanf(line, "step %15s %d %d %d %d %lf", step->mode, &step->size, &step->window,
                &step->most, &step->warmups, &step->seconds) == 6 &&
            step->window <= MOST_WINDOW && step->size > 0 && step->window > 0 && step->most > 0)
            num_steps++;
        else if (!strcmp(line, "rounds\n"))
            return;
        else
            die("the schedule has a line that is not understood: %s", line);
    }
    die("the schedule is cut off");
}

static void find_ranks(void) {
    for (int at = 0; at < num_names; at++) rank_of[at] = -1;
    for (int at = 0; at < num_names; at++)
        for (int each = 0; each < ranks; each++)
            if (!strcmp(names[at], rank_names[each])) {
                if (rank_of[at] >= 0) die("two ranks on %s, one is wanted", names[at]);
                rank_of[at] = each;
            }
    for (int at = 0; at < num_names; at++)
        if (rank_of[at] < 0) die("no rank on %s", names[at]);
}

static void pair(int one, int other) {
    if (one < 0 || other < 0 || one >= num_names || other >= num_names || one == other)
        die("no such pair: %d %d", one, other);
    struct partner *first = &all[rank_of[one]], *second = &all[rank_of[other]];
    if (first->rank >= 0 || second->rank >= 0) die("a node stands twice in a round");
    first->rank = rank_of[other], second->rank = rank_of[one];
    first->is_first = 1, second->is_first = 0;
    strcpy(first->name, names[other]);
    strcpy(second->name, names[one]);
}

/* Returns the number of the next round, or -1 at the end. */
static int next_round(void) {
    int round = 0, used = 0, one, other;
    if (getline(&line, &line_size, schedule) < 0) die("the schedule is cut off");
    if (!strcmp(line, "end\n")) return -1;
    if (sscanf(line, "round %d%n", &round, &used) != 1 || round < 0)
        die("the schedule has a line that is not understood: %s", line);
    for (int at = 0; at < ranks; at++) all[at].rank = -1, all[at].name[0] = 0;
    for (char *rest = line + used; sscanf(rest, "%d %d%n", &one, &other, &used) == 2; rest += used)
        pair(one, other);
    return round;
}

/* Brings what every rank said to rank 0, in the order of ranks, and to the disk. */
static void gather(const char *last_line) {
    int mine = (int)out_used, *sizes = NULL, *starts = NULL;
    char *every = NULL;
    size_t total = 0;
    if (rank == 0 && (!(sizes = malloc((size_t)ranks * sizeof *sizes)) ||
                         !(starts = malloc((size_t)ranks * sizeof *starts))))
        die("no memory");
    MPI_Gather(&mine, 1, MPI_INT, sizes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int at = 0; rank == 0 && at < ranks; at++) {
        starts[at] = (int)total;
        total += (size_t)sizes[at];
        if (total > 2000000000) die("a round says more than 2 GB");
    }
    if (rank == 0 && !(every = malloc(total + 1))) die("no memory for a round");
    MPI_Gatherv(out, mine, MPI_CHAR, every, sizes, starts, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        if (fwrite(every, 1, total, record) != total || fputs(last_line, record) < 0 ||
            fflush(record) || fsync(fileno(record)))
            die("cannot write the record: is the disk full?");
    }
    free(every);
    free(sizes);
    free(starts);
    out_used = 0;
}

/* What may stand in JSON; a library names itself in its first line. */
static char *in_json(char *text) {
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = ';';
        else if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\')
            *at = ' ';
    return text;
}

/* The MPI library that was really loaded, whatever it was linked with; several with " and ". */
static const char *loaded_mpi(void) {
    static char found[2048], line[1024], last[1024];
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') + 1 : NULL;
        if (!name || strncmp(name, "libmpi", 6)) continue;
        name += 6 + strspn(name + 6, "abcdefghijklmnopqrstuvwxyz_0123456789");
        path[strcspn(path, "\n")] = 0;
        if (strncmp(name, ".so", 3) || !strcmp(path, last)) continue;
        snprintf(last, sizeof last, "%s", path);
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s%s", used ? " and " : "", path);
    }
    if (file) fclose(file);
    return in_json(found);
}

static void introduce(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", machine[NAME] = "", cpus[NAME] = "";
    char build[16] = "", digest[65] = ""; /* build.sh says */
    int length = 0;
    static char status[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(status, sizeof status, file))
        if (sscanf(status, "Cpus_allowed_list: %79s", cpus) == 1) break;
    if (file) fclose(file);
    first_word("/proc/sys/kernel/random/boot_id", machine, sizeof machine);
    MPI_Get_library_version(version, &length);
    if (rank == 0) {
        file = fopen("kernel.built", "r");
        if (file && fscanf(file, "%15[a-z] %64[0-9a-f]", build, digest) != 2) *build = *digest = 0;
        if (file) fclose(file);
        say("{\"record\":\"campaign\",\"format\":1,\"ranks\":%d,\"mpi\":\"%s\","
            "\"build\":\"%s\",\"sha256\":\"%s\"}\n", ranks, in_json(version), build, digest);
    }
    say("{\"record\":\"rank\",\"rank\":%d,\"node\":\"%s\",\"cpus\":\"%s\",\"machine\":\"%s\","
        "\"library\":\"%s\",\"facts\":{", rank, node, cpus, machine, loaded_mpi());
    last_interface[0] = 0;
    each_interface(see_facts, NULL);
    say("}}\n");
}

int main(int argc, char **argv) {
    int shared[3], largest = 1;
    struct partner peer;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* Open MPI 5.0.11 dies of a message that comes while it is in MPI_Init still (seen over btl/tcp
     * on busy cores: mca_pml_ob1_recv_frag_callback_match below ompi_mpi_init). */
    sleep(1);
    const char *told = getenv("SLURMD_NODENAME");
    if (told && *told)
        snprintf(node, sizeof node, "%s", told);
    else {
        gethostname(node, sizeof node - 1);
        node[strcspn(node, ".")] = 0;
    }
    if (argc != 3) die("usage: kernel SCHEDULE RECORD");
    if (!is_plain(node)) die("a node of this name cannot be recorded");
    if (rank == 0) {
        read_head(argv[1]);
        if (!(record = fopen(argv[2], "w"))) die("cannot write %s", argv[2]);
        rank_names = calloc((size_t)ranks, sizeof *rank_names);
        all = calloc((size_t)ranks, sizeof *all);
        if (!num_names) names = rank_names, num_names = ranks;
        rank_of = calloc((size_t)num_names, sizeof *rank_of);
        if (!rank_names || !rank_of || !all) die("no memory");
    }
    shared[0] = num_steps, shared[1] = nap_us, shared[2] = limit_seconds;
    MPI_Bcast(shared, 3, MPI_INT, 0, MPI_COMM_WORLD);
    num_steps = shared[0], nap_us = shared[1], limit_seconds = shared[2];
    MPI_Bcast(steps, sizeof steps, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gather(node, NAME, MPI_CHAR, rank_names, NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) find_ranks();
    for (int at = 0; at < num_steps; at++)
        if (steps[at].size > largest) largest = steps[at].size;
    message_out = malloc((size_t)largest);
    message_in = malloc((size_t)largest);
    if (!message_out || !message_in) die("no memory for messages");
    memset(message_out, 'a', (size_t)largest);
    memset(message_in, 'b', (size_t)largest);
    signal(SIGALRM, too_long);
    say("%s", "");
    introduce();
    gather("");
    for (;;) {
        int round = rank == 0 ? next_round() : 0;
        char end[256];
        double begin = (double)time(NULL);
        MPI_Bcast(&round, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (round < 0) break;
        MPI_Scatter(all, sizeof peer, MPI_BYTE, &peer, sizeof peer, MPI_BYTE, 0, MPI_COMM_WORLD);
        alarm((unsigned)limit_seconds);
        run_round(round, &peer);
        snprintf(end, sizeof end, "{\"record\":\"end\",\"round\":%d,\"begin\":%.0f,\"end\":%.0f}\n",
            round, begin, (double)time(NULL));
        gather(end);
        alarm(0);
    }
    gather(rank == 0 ? "{\"record\":\"done\"}\n" : "");
    MPI_Finalize();
    return 0;
}
