#include "bed.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>

namespace bed {

static std::mutex mutex;

static const char * setting(const char * name, const char * otherwise) {
    const char * value = getenv(name);
    return value && *value ? value : otherwise;
}

int devices() {
    return has_fault("no-device") ? 0 : atoi(setting("BED_DEVICES", "1"));
}

int capability() {
    return atoi(setting("BED_CC", "90"));
}

const char * architecture() {
    return setting("BED_ARCH", "gfx1100");
}

bool has_fault(const char * name) {
    const char * at = strstr(setting("BED_FAULT", ""), name);
    return at != nullptr;
}

uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

void wait_until(uint64_t time) {
    const timespec until = {(time_t) (time / 1000000000u), (long) (time % 1000000000u)};
    while (now() < time) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

Listener & listener() {
    static Listener * all = new Listener; /* for ever: calls come at exit, too */
    return *all;
}

int & device() {
    static thread_local int current = 0;
    return current;
}

/* ---- The list of what ran ---- */

static FILE * list() {
    static const char * const path = getenv("BED_LOG");
    static FILE * file = !path ? nullptr : strcmp(path, "-") == 0 ? stdout : fopen(path, "a");
    return file;
}

static void report(const Ran & ran) {
    static const char * const kinds[] = {"kernel", "copy", "fill", "empty"};
    if (list()) {
        const Work & work = ran.work;
        fprintf(list(), "{\"event\":\"work\",\"kind\":\"%s\",\"device\":%u,\"stream\":%u,\"start\":%llu,\"ns\":%llu,\"isOfGraph\":%s,\"grid\":\"%u,%u,%u\",\"block\":\"%u,%u,%u\",\"bytes\":%llu,\"name\":\"%s\"}\n",
                kinds[work.kind], ran.device, ran.stream, (unsigned long long) ran.start, (unsigned long long) (ran.end - ran.start), ran.node ? "true" : "false",
                work.grid[0], work.grid[1], work.grid[2], work.block[0], work.block[1], work.block[2], (unsigned long long) work.bytes,
                work.name.c_str());
        fflush(list());
    }
    if (listener().ran) listener().ran(ran);
}

/* ---- Calls ---- */

static thread_local uint32_t current_call;
static std::atomic<uint32_t> correlations;

Call::Call(uint32_t id) : id_(id), start_(now()) {
    current_call = ++correlations;
}

Call::~Call() {
    if (listener().called) listener().called(current_call, start_, now(), id_);
}

uint32_t Call::correlation() {
    return current_call;
}

/* ---- Streams ---- */

static uint32_t stream_count;

Stream * new_stream() {
    const std::lock_guard<std::mutex> lock(mutex);
    Stream * stream = new Stream;
    stream->device = device();
    stream->id = 7 + 6 * ++stream_count;
    return stream;
}

Stream * stream_of(void * handle) {
    if ((uintptr_t) handle > 2) return (Stream *) handle;
    const std::lock_guard<std::mutex> lock(mutex);
    static std::map<int, Stream> defaults;
    Stream & stream = defaults[device()];
    stream.device = device();
    stream.id = 7;
    return &stream;
}

/* ---- Work ---- */

static uint64_t run(Stream * stream, const Work & work, uint64_t earliest, uint32_t graph, uint64_t node) {
    Ran ran;
    ran.work = work;
    ran.start = earliest;
    ran.end = ran.start + work.cost;
    ran.device = (uint32_t) stream->device;
    ran.stream = stream->id;
    ran.correlation = Call::correlation();
    ran.graph = graph;
    ran.node = node;
    if (work.effect) work.effect();
    if (work.kind != Work::EMPTY) report(ran);
    return ran.end;
}

static std::atomic<int> launches;

static void capture(Stream * stream, const Work & work, Event * event) {
    Graph & graph = *stream->capture->graph;
    Node node;
    node.id = (uint64_t) graph.id << 32 | graph.nodes.size();
    node.work = work;
    node.event = event;
    node.after = stream->last;
    stream->last = {(uint32_t) graph.nodes.size()};
    graph.nodes.push_back(node);
    if (listener().changed) listener().changed(Change::NODE_CREATED, graph, &graph.nodes.back(), 0);
}

int submit(Stream * stream, const Work & work) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (has_fault("launch-error") && work.kind == Work::KERNEL && ++launches == 100) return 719; /* cudaErrorLaunchFailure */
    if (!stream->capture) {
        stream->end = run(stream, work, std::max(stream->end, now()), 0, 0);
        return 0;
    }
    capture(stream, work, nullptr);
    return 0;
}

int launch(Stream * stream, const Graph & graph) {
    const std::lock_guard<std::mutex> lock(mutex);
    std::vector<uint64_t> ends(graph.nodes.size());
    uint64_t last = std::max(stream->end, now() + 2000);
    const uint64_t begin = last;
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        uint64_t earliest = begin;
        for (const uint32_t before : graph.nodes[i].after) earliest = std::max(earliest, ends[before]);
        ends[i] = run(stream, graph.nodes[i].work, earliest, graph.id, graph.nodes[i].id);
        last = std::max(last, ends[i]);
        if (graph.nodes[i].event) graph.nodes[i].event->time = ends[i];
    }
    stream->end = last;
    return 0;
}

/* ---- Graphs ---- */

static uint32_t graph_count;

static Graph * new_graph() {
    Graph * graph = new Graph;
    graph->id = ++graph_count;
    return graph;
}

int begin_capture(Stream * stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (stream->capture) return 900; /* cudaErrorStreamCaptureUnsupported */
    stream->capture = std::make_shared<Capture>();
    stream->capture->graph = new_graph();
    stream->last.clear();
    if (listener().changed) listener().changed(Change::GRAPH_CREATED, *stream->capture->graph, nullptr, 0);
    return 0;
}

/* Has the stream waited for all that was captured? */
static bool is_joined(const Graph & graph, const std::vector<uint32_t> & last) {
    std::vector<bool> is_awaited(graph.nodes.size());
    for (const Node & node : graph.nodes) for (const uint32_t before : node.after) is_awaited[before] = true;
    for (const uint32_t node : last) is_awaited[node] = true;
    return std::find(is_awaited.begin(), is_awaited.end(), false) == is_awaited.end();
}

int end_capture(Stream * stream, Graph ** graph) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!stream->capture) return 901; /* cudaErrorStreamCaptureInvalidated */
    *graph = stream->capture->graph;
    stream->capture.reset();
    return is_joined(**graph, stream->last) ? 0 : 904; /* cudaErrorStreamCaptureUnjoined */
}

Graph * clone(const Graph & graph) {
    const std::lock_guard<std::mutex> lock(mutex);
    Graph * exec = new_graph();
    exec->nodes = graph.nodes;
    for (Node & node : exec->nodes) {
        exec->originals.push_back(node.id);
        node.id = (uint64_t) exec->id << 32 | (node.id & UINT32_MAX);
    }
    if (!listener().changed) return exec;
    for (size_t i = 0; i < exec->nodes.size(); i++) listener().changed(Change::NODE_CLONED, *exec, &exec->nodes[i], exec->originals[i]);
    listener().changed(Change::EXEC_CREATED, *exec, nullptr, 0);
    return exec;
}

bool update(Graph & exec, const Graph & graph) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (exec.nodes.size() != graph.nodes.size()) return false;
    for (size_t i = 0; i < exec.nodes.size(); i++) {
        const Node & from = graph.nodes[i], & to = exec.nodes[i];
        if (from.work.kind != to.work.kind || !from.event != !to.event || from.after != to.after) return false;
    }
    for (size_t i = 0; i < exec.nodes.size(); i++) {
        exec.nodes[i].work = graph.nodes[i].work;
        exec.nodes[i].event = graph.nodes[i].event;
    }
    return true;
}

/* ---- Events ---- */

bool record(Event * event, Stream * stream, bool is_external) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (is_external) {
        if (stream->capture) capture(stream, Work(), event);
        return stream->capture != nullptr;
    }
    event->capture = stream->capture;
    event->last = stream->last;
    event->time = std::max(stream->end, now());
    return true;
}

void wait(Stream * stream, const Event * event) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!event->capture) {
        stream->end = std::max(stream->end, event->time);
        return;
    }
    /* The other stream joins the capture. */
    if (!stream->capture) stream->last.clear();
    stream->capture = event->capture;
    for (const uint32_t node : event->last) {
        if (std::find(stream->last.begin(), stream->last.end(), node) == stream->last.end()) stream->last.push_back(node);
    }
}

} // namespace bed
