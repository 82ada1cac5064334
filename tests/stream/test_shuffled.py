from tests.stream.toys import toy

from polytta.stream import Batch1, Continual, Mild, Mixed, open_stream


def domains():
    return [toy("a"), toy("b", per_class=3)]


def test_mild_shuffles_each_domain_and_resets():
    stream = open_stream(Mild(batch_size=8), domains())
    assert stream.order.domain.tolist() == [0] * 20 + [1] * 12
    assert sorted(stream.order.item[:20]) == list(range(20))
    assert stream.order.item[:20].tolist() != list(range(20))
    assert stream.order.starts == (0, 20)
    assert [len(b.labels) for b in stream.batches()] == [8, 8, 4, 8, 4]
    assert [b.fresh_model for b in stream.batches()] == [True, False, False, True, False]


def test_domains_are_shuffled_differently():
    order = open_stream(Mild(), [toy("a"), toy("b")]).order
    assert order.item[:20].tolist() != order.item[20:].tolist()


def test_batch1_and_continual_share_the_order_of_mild():
    mild = open_stream(Mild(), domains())
    single = open_stream(Batch1(), domains())
    continual = open_stream(Continual(), domains())
    assert single.order.item.tolist() == continual.order.item.tolist() == mild.order.item.tolist()
    assert all(len(b.labels) == 1 for b in single.batches())
    assert sum(b.fresh_model for b in single.batches()) == 2
    assert not any(b.fresh_model for b in continual.batches())


def test_limit_keeps_the_first_of_each_domain():
    whole, cut = open_stream(Mild(), domains()), open_stream(Mild(limit=5), domains())
    assert cut.order.item.tolist() == [*whole.order.item[:5], *whole.order.item[20:25]]
    assert cut.order.starts == (0, 5)


def test_mixed_is_one_permutation_of_the_pool():
    stream = open_stream(Mixed(batch_size=10), domains())
    pairs = list(zip(stream.order.domain.tolist(), stream.order.item.tolist(), strict=True))
    assert sorted(pairs) == [(0, i) for i in range(20)] + [(1, i) for i in range(12)]
    assert stream.order.starts == (0,)
    assert len(set(stream.order.domain[:10].tolist())) == 2
    assert len(open_stream(Mixed(limit=9), domains())) == 9
