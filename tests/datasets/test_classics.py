"""The small classics: digits by the split of earlier work, iris, wine, breast cancer."""

import numpy as np
import pytest

from phasegrad import datasets


class TestClassics:
    def test_digits_come_in_wangs_split(self):
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        data = datasets.digits()
        assert np.bincount(data.y_train).tolist() == [100] * 10
        assert np.bincount(data.y_test).tolist() == [70] * 10
        for digit in range(10):
            rows = np.flatnonzero(y == digit)
            np.testing.assert_array_equal(data.train_rows[data.y_train == digit], rows[:100])
            np.testing.assert_array_equal(data.test_rows[data.y_test == digit], rows[100:170])
        np.testing.assert_array_equal(data.x_test, x[data.test_rows] / 8 - 1)

    def test_shifted_digits_are_moved_by_one_pixel_each_way(self):
        plain, more = datasets.digits(), datasets.digits(shifts=True)
        assert more.x_train.shape == (5000, 64)
        np.testing.assert_array_equal(more.x_test, plain.x_test)
        first = more.x_train[::1000].reshape(5, 8, 8)
        np.testing.assert_array_equal(first[0], plain.x_train[0].reshape(8, 8))
        np.testing.assert_array_equal(first[1][1:], first[0][:-1])
        np.testing.assert_array_equal(first[2][:-1], first[0][1:])
        np.testing.assert_array_equal(first[3][:, 1:], first[0][:, :-1])
        np.testing.assert_array_equal(first[4][:, :-1], first[0][:, 1:])
        assert np.all(first[1][0] == -1)

    @pytest.mark.parametrize(("name", "shape"), [("iris", (120, 4)), ("wine", (142, 13)), ("breast_cancer", (455, 30))])
    def test_classics_are_split_and_scaled(self, name, shape):
        data = datasets.classic(name, seed=2)
        assert data.x_train.shape == shape
        assert data.x_train.min() == -1
        assert data.x_train.max() == 1

    def test_an_unknown_classic_is_refused(self):
        with pytest.raises(ValueError, match="'name' parameter of classic must be one of 'iris'"):
            datasets.classic("titanic")
