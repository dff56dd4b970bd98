// A queue as a C++ class, in a namespace of the library's name; workers are threads of the program.
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <wq.h>

namespace wq {

class error : public std::runtime_error {
public:
	explicit error(int status) : std::runtime_error(wq_strerror(status)) {}
};

// A held key. What is not settled is retried.
class item {
public:
	item(wq_queue *q, const wq_item &it) : queue_(q), item_(it) {}
	item(item &&o) noexcept : queue_(std::exchange(o.queue_, nullptr)), item_(o.item_) {}
	item(const item &) = delete;
	item &operator=(const item &) = delete;
	item &operator=(item &&) = delete;
	~item()
	{
		if (queue_)
			wq_settle(queue_, &item_, WQ_RETRY);
	}
	std::string_view key() const { return {static_cast<const char *>(item_.key), item_.len}; }
	unsigned attempts() const { return item_.attempts; }
	void settle(wq_verdict v) { wq_settle(std::exchange(queue_, nullptr), &item_, v); }

private:
	wq_queue *queue_;
	wq_item item_;
};

class queue {
public:
	queue()
	{
		int rc = wq_new(&queue_, nullptr);

		if (rc < 0)
			throw error(rc);
	}
	~queue() { wq_free(queue_); }
	queue(const queue &) = delete;
	queue &operator=(const queue &) = delete;

	void add(std::string_view key)
	{
		int rc = wq_add(queue_, key.data(), key.size());

		if (rc < 0)
			throw error(rc);
	}
	template <class F> void work(F handle)
	{
		wq_item it;

		while (wq_get(queue_, &it) == WQ_OK)
			handle(item(queue_, it));
	}
	int drain(int64_t timeout_ns)
	{
		wq_drain_options o = {};

		o.mode = WQ_DRAIN_WAIT;
		return wq_drain_for(queue_, timeout_ns, &o, nullptr);
	}

private:
	wq_queue *queue_;
};

} // namespace wq

int main()
{
	wq::queue q;
	std::atomic<int> done{0};
	std::vector<std::thread> workers;

	for (int i = 0; i < 100; i++)
		q.add("key-" + std::to_string(i));
	for (int i = 0; i < 4; i++)
		workers.emplace_back([&] {
			q.work([&](wq::item it) {
				if (it.attempts() == 1 && it.key().back() == '7')
					return; // not settled: tried again
				done++;
				it.settle(WQ_DONE);
			});
		});

	int rc = q.drain(60 * WQ_SECOND);

	for (auto &w : workers)
		w.join();
	return rc != WQ_OK || done != 100;
}
