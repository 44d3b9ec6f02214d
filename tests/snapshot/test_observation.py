"""Values between sources and the core."""

from keda_gpu_scaler.snapshot.observation import Points


def test_points_can_be_taken_like_a_list() -> None:
    points = Points.of([(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)])
    assert (points[0], points[:2], len(points)) == ((1.0, 2.0), [(1.0, 2.0), (3.0, 4.0)], 3)
    assert points == [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    assert points != 7
