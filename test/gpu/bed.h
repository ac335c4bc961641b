/*
 * A GPU that does not exist: its memory is the host's, its kernels are not computed, but they are ordered, timed and reported as a GPU
 * does it. The libraries beside (cudart.cc, cublas.cc, driver.cc, cupti.cc) give it the ABI of CUDA. README.md says what it is for.
 */
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bed {

/* What is computed on a stream. Durations follow from `flop` and `bytes`: see cost.cc. */
struct Work {
    enum Kind { KERNEL, COPY, FILL, EMPTY } kind = EMPTY;
    std::string name;
    uint32_t grid[3] = {}, block[3] = {};
    uint64_t bytes = 0; /* of a copy, a fill */
    int copy_kind = 0; /* cudaMemcpyKind */
    uint64_t cost = 0; /* ns */
    std::function<void()> effect; /* of the few kernels whose results a program cannot do without */
};

struct Graph;
struct Event;

struct Node {
    uint64_t id = 0; /* of its graph << 32 | number in it: kept by clones */
    Work work;
    Event * event = nullptr; /* that it records (cudaEventRecordExternal) */
    std::vector<uint32_t> after; /* indexes of nodes */
};

struct Graph {
    uint32_t id = 0;
    std::vector<Node> nodes;
    std::vector<uint64_t> originals; /* of a clone: the nodes' ids in the graph that it was made of */
};

struct Capture {
    Graph * graph = nullptr;
    bool is_broken = false;
};

struct Stream {
    int device = 0;
    uint32_t id = 0;
    uint64_t end = 0; /* of its last work, on the clock of now() */
    std::shared_ptr<Capture> capture; /* null: it computes */
    std::vector<uint32_t> last; /* nodes of the capture that the next one waits for */
};

struct Event {
    uint64_t time = 0; /* 0: not recorded */
    std::shared_ptr<Capture> capture;
    std::vector<uint32_t> last;
};

/* What a device did: for the stand-in of CUPTI, and for the list of a test (BED_LOG). */
struct Ran {
    Work work;
    uint64_t start = 0, end = 0;
    uint32_t device = 0, stream = 0, correlation = 0, graph = 0;
    uint64_t node = 0; /* 0: not of a graph */
};

enum class Change { NODE_CREATED, NODE_CLONED, GRAPH_CREATED, EXEC_CREATED };

/* What CUPTI's stand-in listens to. `call` has no effect if nothing listens. */
struct Listener {
    std::function<void(const Ran &)> ran;
    std::function<void(Change, const Graph & graph, const Node * node, uint64_t original)> changed;
    std::function<void(uint32_t correlation, uint64_t start, uint64_t end, uint32_t id)> called;
};
Listener & listener();

/* ns of CLOCK_MONOTONIC. */
uint64_t now();
void wait_until(uint64_t time);

/* Of the environment: BED_DEVICES (1), BED_CC (90: compute capability 9.0), BED_ARCH (HIP: gfx1100), BED_FAULT (none, see README.md). */
int devices();
int capability();
const char * architecture();
bool has_fault(const char * name);

int & device(); /* the current one of this thread */
Stream * stream_of(void * handle); /* also of the special handles 0, 1, 2 */
Stream * new_stream();

/* A call of the API: its correlation id, valid until it returns. */
class Call {
public:
    explicit Call(uint32_t id);
    ~Call();
    Call(const Call &) = delete;
    static uint32_t correlation();

private:
    uint32_t id_;
    uint64_t start_;
};

/* Computes it, or captures it. Returns 0, or CUDA's error. */
int submit(Stream * stream, const Work & work);
int launch(Stream * stream, const Graph & graph);

int begin_capture(Stream * stream);
int end_capture(Stream * stream, Graph ** graph);
Graph * clone(const Graph & graph);
/* Takes the parameters of another graph with the same nodes; false: they are others. */
bool update(Graph & exec, const Graph & graph);

/* `is_external`: in a capture, as a node of the graph; else it is where another stream joins. False: not in a capture. */
bool record(Event * event, Stream * stream, bool is_external = false);
void wait(Stream * stream, const Event * event);

Work kernel(const std::string & name, const uint32_t grid[3], const uint32_t block[3], void ** arguments);
Work gemm(int64_t m, int64_t n, int64_t k, int64_t batch, int bytes);
Work copy(int kind, uint64_t bytes);
Work fill(uint64_t bytes);

} // namespace bed
