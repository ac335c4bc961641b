# Builds llama-server from llama.cpp's sources in S, against its libraries in L: what npm's packages do not contain. Libraries are
# shared, as upstream's BUILD_SHARED_LIBS makes them. -O0: half of the time to compile; what computes lies in the libraries.
CXXFLAGS = -O0 -g0 -fPIC -pthread -std=c++17 -w -D_GNU_SOURCE -DLLAMA_SUBPROCESS -DCPPHTTPLIB_LISTEN_BACKLOG=512 \
  -DCPPHTTPLIB_TCP_NODELAY=1 -DCPPHTTPLIB_FORM_URL_ENCODED_PAYLOAD_MAX_LENGTH=1048576 -DCPPHTTPLIB_REQUEST_URI_MAX_LENGTH=32768 \
  $(addprefix -I$S/,include ggml/include common vendor vendor/hash tools/mtmd tools/server tools/ui .)
LIBRARIES = -L$L -L. -l:libllama-common.so -lllama -lggml -l:libggml-base.so -Wl,-rpath,'$$ORIGIN'

folders = $(addprefix $S/,tools/server tools/mtmd tools/ui vendor/cpp-httplib vendor/hash vendor/hash/sha1 \
  vendor/hash/sha256 vendor/hash/xxhash)
objects = $(patsubst %,o/%.o,$(basename $(notdir $1)))
# Most of the time of a source is that of its headers: these are compiled as one.
together = $(filter-out %/main.cpp %-context.cpp %-models.cpp,$(wildcard $S/tools/server/*.cpp))
server = o/together.o $(call objects,server-context.cpp server-models.cpp httplib.cpp ui.cpp)
mtmd = $(call objects,$(filter-out %-cli.cpp,$(wildcard $S/tools/mtmd/*mtmd*.cpp $S/tools/mtmd/clip*.cpp))) o/encoders.o \
  $(call objects,hash.cpp xxhash.c sha1.c sha256.c)
VPATH = $(folders)

llama-server: o/main.o libllama-server-impl.so
	g++ -pthread -o $@ $< -L. -lllama-server-impl -lmtmd $(LIBRARIES)
libllama-server-impl.so: $(server) libmtmd.so
	g++ -shared -pthread -o $@ $(server) -L. -lmtmd $(LIBRARIES)
libmtmd.so: $(mtmd)
	g++ -shared -o $@ $^ $(LIBRARIES)

# The longest first.
$(server): | o
o/together.cpp: $(together)
o/encoders.cpp: $(wildcard $S/tools/mtmd/models/*.cpp)
o/together.cpp o/encoders.cpp: | o
	printf '#include "%s"\n' $^ > $@
o/together.o o/encoders.o: %.o: %.cpp
	g++ $(CXXFLAGS) -c $< -o $@
o/%.o: %.cpp | o
	g++ $(CXXFLAGS) -c $< -o $@
o/sha1.o: sha1.c | o
	g++ $(CXXFLAGS) -x c++ -c $< -o $@
o/%.o: %.c | o
	gcc -O1 -fPIC -w -I$S/vendor/hash -c $< -o $@
o:
	mkdir o
